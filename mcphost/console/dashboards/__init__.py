"""Dashboards: numbers of calls as charts and tables, what needs attention, and first steps."""
