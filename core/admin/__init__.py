"""Base classes for admin pages of several apps."""
