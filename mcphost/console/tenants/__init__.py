"""Pages for tenants: members, service accounts, tokens, and how clients connect."""
