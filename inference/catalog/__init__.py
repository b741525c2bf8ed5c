"""The catalog: in memory for requests, in files for operators, and as JSON for clients."""
