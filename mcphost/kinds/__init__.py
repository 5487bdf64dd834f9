"""The kinds: how each kind of primitive is configured and run."""
