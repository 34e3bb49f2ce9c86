"""The memory of the tiers that this process owns.

A pool is one tensor of pages, page-first, so that a page is one contiguous piece of bytes on
every tier, and a side array with each page's sentinel. Pools know geometry and nothing else:
which page is whose is the core's.
"""
