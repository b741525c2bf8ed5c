"""Records the answers of a checkout to a fixed list of requests, so that two checkouts can be compared."""
