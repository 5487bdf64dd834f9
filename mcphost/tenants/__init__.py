"""Who owns what, and who may do what."""
