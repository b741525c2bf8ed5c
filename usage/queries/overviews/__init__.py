"""What overviews show: of one organization in the console, and of all in the admin."""
