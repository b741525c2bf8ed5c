"""The ledger of usage and what it cost, and everything that reads it."""
