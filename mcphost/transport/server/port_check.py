"""Check that the server's port is free, before anything else is started."""

import socket

MAX_PORT = 65_535


def cannot_listen(host: str, port: int) -> str:
    """The error message, with what to do."""
    if port > MAX_PORT:
        return f"Could not listen on {host}:{port}. The highest port is {MAX_PORT}: set PORT to another one."
    return f"Could not listen on {host}:{port}. If the port is taken, set PORT to another one."


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now. False also for an address of another machine."""
    if port > MAX_PORT:  # the resolver would take its last 16 bits
        return False
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as listener:
                # As servers do: connections of an earlier server in TIME_WAIT do not block the port.
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind(address)
                listener.listen()
    except OSError:
        return False
    return True
