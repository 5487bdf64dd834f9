"""Pages for the platform's users, and for each user's own account."""
