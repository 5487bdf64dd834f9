"""Calls, journals, rounds and their outcomes. No Django, no HTTP."""
