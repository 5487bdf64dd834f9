"""Logs, metrics, traces, health facts."""
