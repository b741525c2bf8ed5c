"""Asking a model server what it is and what it can do, over HTTP as the gateway would.

``run.probe`` asks and returns a ``findings.ServerFindings``; ``settings`` says which settings fit,
``apply`` writes them to the catalog, ``wording`` prints. docs/operate/probe.md is for operators.
"""
