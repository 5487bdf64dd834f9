"""`subscriptions/listen`, and the registry of clients that this process notifies of changes."""
