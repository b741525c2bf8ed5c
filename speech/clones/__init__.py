"""Voice clones: what is measured on a reference clip, how it is kept, how it is named."""
