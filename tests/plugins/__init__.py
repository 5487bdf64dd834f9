"""What looks at every test; loaded by conftest.py at the root."""
