"""The login of console and admin, and its throttle."""
