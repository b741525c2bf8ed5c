"""Figures as they are written, and numbers in words."""
