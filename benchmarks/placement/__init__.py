"""Where requests go among several replicas of a model, and what that is worth (docs/explain/placement.md)."""
