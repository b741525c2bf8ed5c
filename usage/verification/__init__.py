"""Checks the ledger against itself, and rebuilds its sums from the rows."""
