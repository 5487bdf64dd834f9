"""Sealed tokens: issued to clients and returned by them unchanged. No I/O."""
