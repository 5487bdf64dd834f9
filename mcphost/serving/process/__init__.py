"""Process start and stop, periodic work, and the checks before the first request."""
