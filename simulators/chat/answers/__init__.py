"""Composes the simulated answers: text, reasoning, tool calls and structured answers."""
