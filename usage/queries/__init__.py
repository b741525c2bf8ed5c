"""Queries on the ledger: periods, sums, series and rows."""
