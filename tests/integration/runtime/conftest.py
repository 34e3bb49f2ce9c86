import os
import threading

import pytest


@pytest.fixture(autouse=True)
def nothing_leaks():
    """A closed cache leaves no thread and no open file behind."""
    threads = set(threading.enumerate())
    files = set(os.listdir("/proc/self/fd"))
    yield
    left = set(threading.enumerate()) - threads
    assert not left, f"threads left running: {left}"
    opened = set(os.listdir("/proc/self/fd")) - files
    targets = {
        fd: os.readlink(f"/proc/self/fd/{fd}")
        for fd in opened
        if os.path.exists(f"/proc/self/fd/{fd}")
    }
    kept = {
        fd: to for fd, to in targets.items() if "eventfd" in to or "socket" in to or "/lock" in to
    }
    assert not kept, f"descriptors left open: {kept}"
