"""Romanized Hindi to Devanagari, offline. Entry point: ``speech.hindi.detect.transliterate``."""
