"""Clients of other makers, each a program of its own.

Each reads {"url", "token"} from its input and writes a line of JSON whenever it has something to
tell: first what it saw on its way through everything ("seen"); then what it listens to
("listening"); then, whenever it hears of a change, what it finds when it asks anew: "tools",
"prompts", "resources" or, of the one that it has subscribed to, "read".
"""
