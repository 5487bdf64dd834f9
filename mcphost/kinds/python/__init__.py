"""Python functions as tools: found in a folder, described by their signatures, run in process."""
