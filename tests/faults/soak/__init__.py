"""Long runs of real servers under mixed load while database, disk, clock and processes fail.

``python -m tests.faults.soak``; docs/develop/testing.md explains it, docs/explain/metering.md has the
last results.
"""
