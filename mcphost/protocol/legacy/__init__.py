"""The session-based revisions: what differs in their messages. No I/O."""
