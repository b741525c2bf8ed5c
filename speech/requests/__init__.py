"""One speech request or session, from its first byte to its row in the ledger."""
