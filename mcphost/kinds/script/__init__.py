"""The kind `script`: Python pasted by a tenant, run in a sandbox."""
