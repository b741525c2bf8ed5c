"""Limits of the speech surface: requests a minute, characters a day, clones an hour."""
