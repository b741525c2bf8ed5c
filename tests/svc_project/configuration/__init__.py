"""Tests of documents of the whole installation."""
