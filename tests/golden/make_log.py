"""Writes the recordings *_v1.seg, with what is true of them: every later version must read them.
`make golden` runs it; only when version 1 of the log itself changes, which after a release it must
not.
"""

from __future__ import annotations

import json
from pathlib import Path

from helpers.talker import Churn, new_core
from played import hybrid

from kvctl.collector.segment import MAGIC, Record
from runtime._core import Core

HERE = Path(__file__).parent
ADDRESS = "tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5558,control=tcp://127.0.0.1:5559"


def busy() -> Core:
    core = new_core(epoch="golden", engine="golden")
    Churn(core, seed=7).play(12)
    return core


def record(core: Core, name: str) -> None:
    data, number, log = MAGIC, 0, core.log()
    while message := log.drain(200):
        header = {"kind": "message", "address": ADDRESS, "number": number, "received": 0}
        data += Record(header, message.payload).encode()
        number += 1
    (HERE / f"{name}.seg").write_bytes(data)
    told = {"messages": number, "rows": core.seq(), "state_hash": core.state_hash()}
    (HERE / f"{name}.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    record(busy(), "log_v1")
    record(hybrid.play(), "hybrid_v1")
