import pytest

from telemetry.address import EngineAddress, require_loopback
from telemetry.errors import BadAddress


def test_replay_and_control_follow_the_events_port():
    address = EngineAddress.parse("tcp://127.0.0.1:5557")
    assert address.replay == "tcp://127.0.0.1:5558"
    assert address.control == "tcp://127.0.0.1:5559"


def test_an_address_survives_being_written_down():
    text = "ipc:///run/a,replay=tcp://127.0.0.1:9,control=ipc:///run/c"
    assert str(EngineAddress.parse(text)) == text


@pytest.mark.parametrize(
    "endpoint",
    [
        "tcp://0.0.0.0:5557",
        "tcp://*:5557",
        "tcp://10.1.2.3:5557",
        "tcp://example.org:5557",
        "tcp://127.0.0.1.evil.org:1",
        "udp://127.0.0.1:1",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:99999",
        "127.0.0.1:5557",
        "",
    ],
)
def test_nothing_but_this_machine_is_served(endpoint):
    """security-04: loopback by default."""
    with pytest.raises(BadAddress, match=r"endpoint"):
        require_loopback(endpoint)


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:*", "tcp://localhost:1", "ipc:///tmp/x"])
def test_this_machine_is_served(endpoint):
    assert require_loopback(endpoint) == endpoint


@pytest.mark.parametrize(
    "text", ["tcp://127.0.0.1:1,replay", "tcp://127.0.0.1:*", "ipc:///x", "tcp://127.0.0.1:1,x=y"]
)
def test_an_address_that_cannot_be_connected_to_is_refused(text):
    with pytest.raises(BadAddress):
        EngineAddress.parse(text)
