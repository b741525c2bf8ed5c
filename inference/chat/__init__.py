"""Serves one chat request, from its first byte to its row in the ledger."""
