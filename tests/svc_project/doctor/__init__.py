"""What `svc doctor` finds."""
