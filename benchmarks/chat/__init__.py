"""The tables of ``python -m benchmarks``: one module each."""
