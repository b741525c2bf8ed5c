"""svc beside other gateways on the same model server: ``make bench-compare``."""
