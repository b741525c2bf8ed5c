"""Shared by model servers and speech servers: addresses, connections, health."""
