"""The gate in front of Django: bounds on bodies and threads, and each caller's share."""
