"""Figures, signs and symbols of one sentence, written out in words.

Entry points: ``sentence.normalised`` and, for engines that read figures by themselves,
``characters.cleaned``. Rules: docs/explain/speech-text.md, Figures, signs and symbols.
"""
