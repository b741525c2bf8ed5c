"""What happened and what it cost: the ledger, and everything that reads it."""
