"""The administration API below `/api/v1/`: what the console does, for programs."""
