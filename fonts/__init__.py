"""The fonts of the console: the complete files, and the command that makes the small ones that are served."""
