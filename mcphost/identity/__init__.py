"""Authentication: bearer tokens and their principals, service accounts, password checks."""
