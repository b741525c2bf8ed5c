"""Who is calling: organizations, users, memberships and API keys."""
