"""Speech servers over HTTP, as one engine each."""
