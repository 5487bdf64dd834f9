"""Plugins that check every test; conftest.py at the root loads them."""
