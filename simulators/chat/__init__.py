"""A model server without a model: OpenAI-compatible, deterministic, with honest token counts.

Described for its users in docs/develop/simulator.md.
"""
