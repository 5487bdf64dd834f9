"""Keys and secrets in the database: the key ring, tenants' salts and payload keys."""
