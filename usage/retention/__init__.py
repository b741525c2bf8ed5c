"""Retention: old months are pruned from the ledger and archived as files; their sums stay."""
