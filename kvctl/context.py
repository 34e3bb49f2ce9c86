"""A context: the directory of one server, and who runs it.

It holds server.json (pid, endpoint, started), lock, segments/ and kvctl.duckdb, and is readable by
its owner alone. $KVCTL_HOME names it; otherwise it is $XDG_STATE_HOME/kvctl/<name>.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kvctl.errors import Unreachable, UsageError

SOCKET_PATH_BYTES_MAX = 100
"""Unix socket addresses end at 107 bytes; libzmq needs some."""


@dataclass(frozen=True)
class Context:
    home: Path

    @staticmethod
    def find(home: str | Path | None = None, name: str | None = None) -> Context:
        """What is named, by its directory or in the state directory; else $KVCTL_HOME; else the
        context `default`."""
        chosen = home or (os.environ.get("KVCTL_HOME") if name is None else None)
        if chosen:
            return Context(Path(chosen).expanduser().absolute())
        name = "default" if name is None else name
        if not name or Path(name).name != name or name.startswith("."):
            raise UsageError(f"context {name!r}: a plain name")
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return Context(Path(state).absolute() / "kvctl" / name)

    @property
    def name(self) -> str:
        return self.home.name

    @property
    def segments(self) -> Path:
        return self.home / "segments"

    @property
    def database(self) -> Path:
        return self.home / "kvctl.duckdb"

    @property
    def log(self) -> Path:
        """What a detached server says."""
        return self.home / "server.log"

    @property
    def _socket(self) -> Path:
        return self.home / "api.sock"

    @property
    def _card(self) -> Path:
        return self.home / "server.json"

    def make(self) -> None:
        try:
            self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.home.chmod(0o700)
        except OSError as error:
            raise UsageError(f"context directory {self.home}: {error.strerror or error}") from error

    def lock(self) -> int:
        """Become this context's one server. The lock goes with the process; keep the number
        open."""
        self.make()
        lock = os.open(self.home / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise UsageError(f"a server runs already for context {self.home}") from None
        return lock

    def running(self) -> bool:
        """A process holds the lock."""
        try:
            lock = os.open(self.home / "lock", os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def socket(self) -> tuple[str, Path | None]:
        """Endpoint for the API, and a directory that the server must remove at its end."""
        if len(os.fsencode(self._socket)) <= SOCKET_PATH_BYTES_MAX:
            return f"ipc://{self._socket}", None
        short = Path(tempfile.mkdtemp(prefix="kvctl-"))  # mode 0700
        return f"ipc://{short / 'api.sock'}", short

    def announce(self, endpoint: str, started: int) -> None:
        card = json.dumps({"pid": os.getpid(), "endpoint": endpoint, "started": started})
        fresh = self._card.with_suffix(".tmp")
        fresh.write_text(card)
        fresh.chmod(0o600)
        fresh.replace(self._card)

    def withdraw(self, short: Path | None) -> None:
        self._card.unlink(missing_ok=True)
        self._socket.unlink(missing_ok=True)  # libzmq leaves it.
        if short is not None:
            shutil.rmtree(short, ignore_errors=True)

    def server(self) -> dict[str, Any]:
        """The running server's card; Unreachable when none runs."""
        if not self.running():
            raise Unreachable(f"no server runs for context {self.home}; start one: kvctl serve")
        try:
            card: dict[str, Any] = json.loads(self._card.read_text())
            if isinstance(card["endpoint"], str):
                return card
        except (OSError, ValueError, LookupError, TypeError):
            pass  # Missing while the server starts; what is no card was not written by a server.
        raise Unreachable(f"the server of context {self.home} is not ready yet")
