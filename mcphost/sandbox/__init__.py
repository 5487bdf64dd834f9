"""Killable processes that run what tenants wrote: scripts and JMESPath expressions."""
