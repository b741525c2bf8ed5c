"""Leaf helpers without models; every app may import them, they import no app."""
