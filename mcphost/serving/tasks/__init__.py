"""Tasks while they work: their rounds, and the notifications of their changes."""
