"""Base classes of the consumers: HTTP, WebSocket, server-sent events, JSON bodies, drain."""
