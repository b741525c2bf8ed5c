"""How Django's own pages write times: one form that names UTC, also in the admin's history."""
