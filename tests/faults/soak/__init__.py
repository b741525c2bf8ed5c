"""Long runs of real servers under mixed load while what they stand on fails.

``python -m tests.faults.soak``; docs/develop/testing.md says how, docs/explain/metering.md has the last results.
"""
