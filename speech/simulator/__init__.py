"""A speech server without a neural voice: OpenAI-compatible, it really speaks, and fails when told to.

Described for its users in docs/develop/simulator.md.
"""
