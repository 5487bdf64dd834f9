"""The admin site: every page that people see."""
