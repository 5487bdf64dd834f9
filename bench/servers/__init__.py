"""The peers, each a script of its own: `python bench/servers/<peer>_server.py PORT`."""
