"""The journal of an engine's core in a file: every command and completion, with its moment.

`python -m runtime.journal FILE` plays it again from nothing and prints the state_hash that comes
out, which is the engine's at the end of the last piece that is whole. A crash may cut a piece off
at the end, and that is said; a journal that lacks any other piece is refused. One that names
policies of somebody's own is played only with `--policies`, since they are imported and called.
"""

import sys
from pathlib import Path

from runtime._core import Core, CoreError, whole_pieces
from runtime.errors import ConfigError


class JournalFile:
    """Appends what the core has been told. Made when the engine starts: an old file is refused,
    since a journal tells one life from its beginning.

    Raises ConfigError when the file exists or cannot be made.
    """

    def __init__(self, core: Core, path: Path) -> None:
        try:
            self._file = path.open("xb", buffering=0)
        except OSError as error:
            raise ConfigError(f"Cannot keep a journal in {path}: {error.strerror}.") from error
        self._core = core
        self.fault = ""
        """Why it is kept no longer; a full disk must not stop an engine."""

    def flush(self) -> None:
        """Append what is new. The file is not synced: it is for replays, not for recovery."""
        left = memoryview(self._core.drain_journal())
        if self.fault:
            return
        try:
            while left:  # a disk that is nearly full takes a part
                left = left[self._file.write(left) :]
        except OSError as error:
            self.fault = f"{self._file.name}: {error.strerror}"

    def close(self) -> None:
        self.flush()
        self._file.close()


def main(arguments: list[str]) -> int:
    policies = arguments[:1] == ["--policies"]
    arguments = arguments[policies:]
    if len(arguments) != 1:
        print("usage: python -m runtime.journal [--policies] FILE", file=sys.stderr)
        return 2
    try:
        journal = Path(arguments[0]).read_bytes()
        pieces, end = whole_pieces(journal)
        if end < len(journal):
            cut = f"piece {pieces + 1} is cut, and left out ({len(journal) - end} bytes)."
            print(f"{arguments[0]}: {cut}", file=sys.stderr)
        core = Core.replay(journal[:end], policies=policies)
        core.check()
    except OSError as error:
        print(f"Cannot read {arguments[0]}: {error.strerror}.", file=sys.stderr)
        return 2
    except CoreError as error:
        print(f"{arguments[0]}: {error}", file=sys.stderr)
        return 1
    print(f"{core.state_hash()} after row {core.seq()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
