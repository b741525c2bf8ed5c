"""An account's pronunciations: their rows, their API, and what a worker holds of them."""
