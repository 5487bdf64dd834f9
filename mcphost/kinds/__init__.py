"""How each kind of tool runs."""
