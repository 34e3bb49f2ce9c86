"""Lets tests import `helpers` from wherever they run, and torch's threads wait without spinning."""

import os

# Read when torch is loaded; as in runtime/demo/__main__.py.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
