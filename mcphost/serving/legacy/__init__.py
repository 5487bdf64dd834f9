"""Clients of the session-based revisions: their sessions, their methods, their streams."""
