"""The configuration of the whole installation as one document: files of operators, and the management API."""
