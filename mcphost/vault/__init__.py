"""Keys and secrets at rest: the key ring, tenants' salts and payload keys."""
