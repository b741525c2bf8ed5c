"""How real model servers answer, as data: a module for each, with the source of every deviation.

docs/develop/simulator.md, "Dialects", has the table.
"""
