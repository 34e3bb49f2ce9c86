"""Writes log_v1.seg: a recording that every later version must read. Run it only when version 1 of
the log itself changes, which after a release it must not: `PYTHONPATH=.:tests python
tests/golden/make_log.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from helpers.talker import Churn, new_core

from kvctl.collector.segment import MAGIC, Record

HERE = Path(__file__).parent
ADDRESS = "tcp://127.0.0.1:5557,replay=tcp://127.0.0.1:5558,control=tcp://127.0.0.1:5559"


def main() -> None:
    core = new_core(epoch="golden", engine="golden")
    Churn(core, seed=7).play(12)
    data, number, log = MAGIC, 0, core.log()
    while message := log.drain(200):
        header = {"kind": "message", "address": ADDRESS, "number": number, "received": 0}
        data += Record(header, message.payload).encode()
        number += 1
    (HERE / "log_v1.seg").write_bytes(data)
    told = {"messages": number, "rows": core.seq(), "state_hash": core.state_hash()}
    (HERE / "log_v1.json").write_text(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
