"""What goes into the log comes out of it, whatever it is, and what is lost is counted."""

import pyarrow.ipc
import pytest
from driver import Driver

from runtime._core import Replica

NAMES = [
    "[red]s[/red]",
    "line\nline\r\n\ttab",
    "\x1b[31mred\x1b[0m",
    "nul\0nul",
    "'; DROP TABLE sessions; --",
    '{"json": "yes"}',
    "séance ✓ \U0001f4a5 \u202eltr",
    " ",
    "x" * 1_000_000,
]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name[:12]))
def test_a_name_survives_the_log(name):
    d = Driver(name, device=4, engine=name, epoch=name, namespace=name)
    d.core.open_session(d.tick(), name + "child", name)
    d.serve(name, [1, 2])
    d.core.pin(d.tick(), name, "device", 5, name)
    d.core.note(d.tick(), "canary", "check", session=name, request=name, detail=name)
    message = d.core.log().drain()
    rows = pyarrow.ipc.open_stream(message.payload).read_all().to_pylist()
    assert rows[-1]["session"] == rows[-1]["request"] == rows[-1]["detail"] == name
    replica = Replica()
    replica.fold(message.payload)
    assert (replica.engine, replica.epoch) == (name, name)
    assert {s.name: s.parent for s in replica.sessions()} == {name: "", name + "child": name}
    ((_, _, owner, _, _),) = next(s for s in replica.sessions() if s.name == name).leases
    assert owner == name
    assert name[:50].splitlines()[0] in repr(d.core.session(name)) or "\\" in repr(name)


def test_what_nobody_drains_is_dropped_and_counted():
    d = Driver("s", device=4, log_rows=10)
    d.serve("s", [1, 2])
    log, rows = d.core.log(), d.core.seq()
    assert (log.pending(), log.dropped()) == (10, rows - 10)
    message = log.drain(4)
    assert (message.first, message.rows) == (rows - 9, 4)
    told = pyarrow.ipc.open_stream(message.payload).schema.metadata[b"dropped"]
    assert int(told) == rows - 10
    with pytest.raises(OverflowError):
        log.drain(-1)
    assert log.drain(0).rows == 1
    assert log.drain(2**63).rows == 5
    assert log.drain() is None


def test_time_never_goes_back_and_may_be_at_its_end():
    end = 2**63 - 1
    d = Driver("s", device=4, wall_offset=end)
    d.core.open_session(end, "late")
    d.core.open_session(-end, "early")
    assert d.core.session("early").last_use == end
    d.serve("s", [1])
    d.pin("s", "device", ttl=end)
    message = d.core.log().drain()
    table = pyarrow.ipc.open_stream(message.payload).read_all()
    assert max(table["ts"].to_pylist()) == end
    replica = Replica()
    assert replica.fold(message.payload) == d.core.state_hash()
