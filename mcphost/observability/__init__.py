"""Logs, metrics, traces, health probes."""
