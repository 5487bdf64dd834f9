"""Jobs for a process of their own, each named by the job's bytes."""

import json
import os
import resource
import socket


def run(job: bytes) -> bytes:
    match job:
        case b"wait":
            silent, _open = socket.socketpair()
            silent.recv(1)
        case b"compute":
            while True:
                pass
        case b"memory":
            bytearray(1 << 40)
        case b"die":
            os._exit(3)
        case b"raise":
            raise ValueError(job)
        case b"large":
            return bytes(2 << 20)
        case b"who":
            return json.dumps(_who()).encode()
    return job[::-1]


def _who() -> dict[str, object]:
    network: bool | str
    try:
        network = bool(socket.create_connection(("192.0.2.1", 80), 0.1))
    except OSError as error:
        network = str(error)
    return {
        "environment": dict(os.environ),
        "memory": resource.getrlimit(resource.RLIMIT_AS)[0],
        "process": os.getpid(),
        "network": network,
    }
