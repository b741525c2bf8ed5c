"""Transliterates romanized Hindi to Devanagari, offline. Entry point: ``detect.transliterate``."""
