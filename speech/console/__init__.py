"""The console's page of voices: listening, speaking, cloning."""
