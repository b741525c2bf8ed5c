"""Prepares the text of a request for engines: tags, sentences, figures.

It knows no Django, no engine and no audio: plain text in, plain values out.
"""
