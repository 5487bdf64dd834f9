"""Summaries of calls beside the record: one row per call, and counts over time."""
