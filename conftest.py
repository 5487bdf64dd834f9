"""Plugins that look at every test of the project, wherever it lies."""

pytest_plugins = [
    "tests.plugins.garbage",
    "tests.plugins.skips",
    "tests.plugins.canaries",
    "tests.plugins.costs",
    "tests.plugins.groups",
    "tests.plugins.starts",
]
