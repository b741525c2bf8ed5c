"""The only writer of usage rows and speech rows, from a receipt to a committed batch."""
