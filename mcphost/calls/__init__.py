"""Short-lived rows of calls in progress: claims of rounds, opened links, sessions and their calls,
questions and streams."""
