"""Everything kvctl refuses or fails at.

KvctlError
├── UsageError          bad_argument   wrong argument, unknown verb, bad configuration        exit 2
│   ├── SqlRefused      sql_refused    not a single reading statement
│   ├── SqlError        sql_error      the statement itself is wrong
│   ├── ReadOnly        read_only      an acting verb over a file or a read-only source
│   ├── Ambiguous       ambiguous      several engines fit; the message names them
│   └── Refused         (engine's)     an engine or server refused: unknown_session, stale_epoch …
├── Unreachable         unreachable    no server, or an engine that is gone                   exit 3
├── TimedOut            timeout        no answer in time                                      exit 4
└── NotEstablished      not_established  the data cannot answer                               exit 5
    ├── StoreError      store          the database cannot be opened or written
    └── SegmentError    segment        a segment cannot be written (a full disk) or read

`code` travels in the API's envelope; `from_code` makes the same error again on the asking side.
"""

from kvctl.exits import Exit


class KvctlError(Exception):
    code = "error"
    exit = Exit.USAGE


class UsageError(KvctlError):
    code = "bad_argument"


class SqlRefused(UsageError):
    code = "sql_refused"


class SqlError(UsageError):
    code = "sql_error"


class ReadOnly(UsageError):
    code = "read_only"


class Ambiguous(UsageError):
    code = "ambiguous"


class Refused(UsageError):
    """An engine's (or a newer server's) own refusal; `code` is theirs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(KvctlError):
    code = "unreachable"
    exit = Exit.UNREACHABLE


class TimedOut(KvctlError):
    code = "timeout"
    exit = Exit.TIMEOUT


class NotEstablished(KvctlError):
    code = "not_established"
    exit = Exit.NOT_ESTABLISHED


class StoreError(NotEstablished):
    code = "store"


class SegmentError(NotEstablished):
    code = "segment"


_BY_CODE = {
    kind.code: kind
    for kind in (
        UsageError,
        SqlRefused,
        SqlError,
        ReadOnly,
        Ambiguous,
        Unreachable,
        TimedOut,
        NotEstablished,
        StoreError,
        SegmentError,
    )
}


def from_code(code: str, message: str) -> KvctlError:
    """The error that an API answer names; an unknown code becomes `Refused`."""
    kind = _BY_CODE.get(code)
    return kind(message) if kind else Refused(code, message)
