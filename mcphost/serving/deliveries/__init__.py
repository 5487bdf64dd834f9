"""What becomes of an outcome: one module per way in which a call reaches the platform."""
