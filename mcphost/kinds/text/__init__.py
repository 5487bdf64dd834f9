"""Prompts and resources that are data: written in the console, with placeholders for arguments."""
