"""What changed, told to every process."""
