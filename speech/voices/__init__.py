"""Voices: in memory for requests, in files for operators, and as clients see them."""
