"""A tenant's configuration as one file: exported, compared with the tenant, and applied to it as a whole."""
