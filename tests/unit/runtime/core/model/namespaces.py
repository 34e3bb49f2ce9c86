"""Namespaces: the roots under which pages can meet."""

from .records import Refused
from .sessions import Sessions


class Namespaces(Sessions):
    def open_namespace(self, name: str) -> int:
        """The number of an open one; a retired name does not come back."""
        if not name:
            raise Refused("BadArgument")
        for number, known in self.namespaces.items():
            if known == name:
                if number in self.retired:
                    raise Refused("BadArgument")
                return number
        number = len(self.namespaces)
        self.namespaces[number] = name
        return number

    def retire(self, namespace: int) -> int:
        """Nobody finds its pages any more. What is held or moving goes when it is free."""
        if namespace not in self.namespaces or namespace in self.retired:
            raise Refused("BadArgument")
        self.retired.add(namespace)
        for number, lease in list(self.leases.items()):
            if lease.path[0] == namespace:
                del self.leases[number]
        before = self.pages_of(namespace)
        self.settle()
        return before - self.pages_of(namespace)

    def pages_of(self, namespace: int) -> int:
        """Pages of a namespace that have bytes somewhere."""
        pages = [page for page in self.nodes if page[0] == namespace]
        return sum(not self.gone(self.full(page)) for page in pages)
