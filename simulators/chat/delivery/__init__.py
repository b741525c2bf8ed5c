"""Sends answers: streamed or whole, in each dialect."""
