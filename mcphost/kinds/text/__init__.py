"""Prompts and resources that are data: written in the admin, with placeholders for arguments."""
