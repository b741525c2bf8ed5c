"""From a text with tags to the sound of each sentence."""
