"""A speech server without a neural voice: OpenAI-compatible, it really speaks, with faults on request.

Described for its users in docs/develop/simulator.md.
"""
