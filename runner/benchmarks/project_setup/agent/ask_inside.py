"""Send a request to the terminal inside a sandbox and print its answer.

The request is JSON; its `name` is the terminal's. The program runs as `terminal_inside.py` does. Exit codes: 0; 3 when
there is no such terminal; 4 when it heard the request and gave no answer. A terminal that is later than the request
allows, and `FAULT_SECONDS` more, is killed.
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
"""The terminal ends or kills a command within ten seconds."""
CREDENTIALS = "3i"


def main(request: str) -> int:
    """Ask and print; return the exit code."""
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
