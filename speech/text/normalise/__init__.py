"""Writes out the figures, signs and symbols of one sentence in words.

Entry points: ``sentence.normalised`` and, for engines that read figures themselves,
``characters.cleaned``. Rules: docs/explain/speech-text.md, Figures, signs and symbols.
"""
