"""The script editor of the console: its source, and how its bundle is built."""
