"""The running ledger of one process."""
