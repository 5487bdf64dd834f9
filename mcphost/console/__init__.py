"""The console: every page that people see."""
