"""A separate program that simulates model servers and speech servers."""
