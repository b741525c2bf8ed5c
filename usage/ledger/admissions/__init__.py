"""Admissions in the database: requests that have no row yet, and the processes that own them."""
