"""What differs in the messages of the session-based revisions. No I/O."""
