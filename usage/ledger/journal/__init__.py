"""The journal: local files that keep receipts until the database has them."""
