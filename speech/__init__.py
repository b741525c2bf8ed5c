"""The speech surface: voices, clones and synthesis."""
