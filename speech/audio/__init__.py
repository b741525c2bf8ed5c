"""Samples, audio files, and measurements of them."""
