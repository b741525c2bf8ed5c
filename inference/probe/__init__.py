"""Probes a model server for its abilities, over HTTP as the gateway would use it.

``run.probe`` sends the requests and returns a ``findings.ServerFindings``; ``settings`` chooses
settings, ``apply`` writes them to the catalog, ``wording`` prints. docs/operate/probe.md is for
operators.
"""
