"""The composition root: settings, surfaces, routing and the server command."""
