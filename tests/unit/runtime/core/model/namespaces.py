"""Namespaces: the roots under which pages can meet."""

from .records import Refused
from .sessions import Sessions


class Namespaces(Sessions):
    def open_namespace(self, name: str) -> int:
        """The number of an open one. Under a retired name nothing of old is found."""
        if not name:
            raise Refused("BadArgument")
        for number, known in self.namespaces.items():
            if known == name and number not in self.retired:
                return number
        number = len(self.namespaces)
        self.namespaces[number] = name
        return number

    def retire(self, namespace: int) -> int:
        """Nobody finds its pages any more. What is locked or moving goes when it is free, what is
        leased at once."""
        if namespace not in self.namespaces or namespace in self.retired:
            raise Refused("BadArgument")
        self.retired.add(namespace)
        before = self.pages_of(namespace)
        self.settle()
        return before - self.pages_of(namespace)

    def pages_of(self, namespace: int) -> int:
        """Pages of a namespace that have bytes somewhere."""
        pages = [page for page in self.nodes if page[0] == namespace]
        return sum(bool(self.full(page).here) for page in pages)
