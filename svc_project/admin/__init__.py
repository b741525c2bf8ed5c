"""The admin site of this project."""
