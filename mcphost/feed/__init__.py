"""The change log: notifies every process of changes."""
