"""Tenants, their members and invitations, and permissions."""
