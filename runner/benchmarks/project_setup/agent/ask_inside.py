"""Prints the answer of the terminal inside a sandbox to a request, which is JSON; its `name` is the terminal's.

Runs as `terminal_inside.py` does. Exit code: 0; 3 when there is no such terminal; 4 when it heard and gave no answer.
One that gives none in time is killed: the request says how long it may wait, and how long beyond is a fault.
"""

import json
import os
import signal
import socket
import struct
import sys

NOBODY = 3
WENT_AWAY = 4
FAULT_SECONDS = 25.0
"""It ends and kills a command within ten."""
CREDENTIALS = "3i"


def main(request: str) -> int:
    """Ask and print."""
    given = json.loads(request)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        try:
            server.connect(f"\0{given['name']}")
        except ConnectionRefusedError:
            return NOBODY
        server.settimeout(given["seconds"] + FAULT_SECONDS)
        size = struct.calcsize(CREDENTIALS)
        peer, *_ = struct.unpack(CREDENTIALS, server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        try:
            server.sendall(request.encode() + b"\n")
            with server.makefile("rb") as stream:
                answer = stream.readline()
        except TimeoutError:
            os.kill(peer, signal.SIGKILL)
            return WENT_AWAY
        except ConnectionError:
            return WENT_AWAY
    sys.stdout.buffer.write(answer)
    return 0 if answer else WENT_AWAY


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
