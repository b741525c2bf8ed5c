"""From the text of a request to sentences that an engine can speak: tags, sentences, figures.

No Django, no engine, no audio: plain text in, plain values out.
"""
