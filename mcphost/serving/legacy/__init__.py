"""Clients of the session-based revisions: sessions, methods, streams."""
