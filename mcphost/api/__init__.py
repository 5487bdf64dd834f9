"""The REST interface for operators' automation. Empty so far."""
