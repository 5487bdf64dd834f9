"""Real servers, real clients, real connections: `pytest tests/e2e -p no:playwright`."""
