"""Lets tests import `helpers` from wherever they run."""
