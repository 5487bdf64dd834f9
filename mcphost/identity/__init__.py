"""Who is calling: bearer tokens and the principals they stand for."""
