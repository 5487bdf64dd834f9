"""Sealed tokens: what we hand out and take back unchanged. No I/O."""
