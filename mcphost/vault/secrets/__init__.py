"""Secrets that tenants store for their tools: named, encrypted, sent to the hosts that they name."""
