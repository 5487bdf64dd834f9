"""Clients of other makers, each a program of its own.

Each reads {"url", "token"} from its input and writes a line of JSON whenever it has something to
tell: first what it saw on its way through everything; then what it listens to; then, each time
that the list of tools changes, the names of all tools.
"""
