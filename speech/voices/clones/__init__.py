"""Voice clones: measured from a reference clip, stored, and deleted."""
