"""``svc doctor``: checks an installation, one line a check, and says what to do."""
