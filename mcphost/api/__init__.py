"""The REST interface for operators' own automation."""
