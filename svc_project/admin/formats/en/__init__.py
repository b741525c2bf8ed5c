"""The formats of the one language of these pages."""
