"""The embedded and the neural engine side by side: quality, speed, sessions at once, interruptions."""
