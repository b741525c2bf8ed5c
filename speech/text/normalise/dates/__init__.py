"""Writes dates and times of day in words."""
