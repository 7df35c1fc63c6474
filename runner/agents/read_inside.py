"""Print the files that match a glob. Runs inside a sandbox, beside everything that the agent left: GLOB BYTES.

Fails for anything but regular files of at most BYTES together. Does not follow links or wait for pipes.
"""

import glob
import os
import stat
import sys


def content(path: str, most: int) -> bytes:
    """Read a regular file, up to one byte more than `most`."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            sys.exit(f"{path} is not a regular file")
        return file.read(most + 1)


def main(pattern: str, most: int) -> None:
    """Print the files in the order of their names, each with a newline."""
    for path in sorted(glob.iglob(pattern)):  # noqa: PTH207 - loading pathlib takes longer than the rest
        text = content(path, most)
        most -= len(text)
        if most < 0:
            sys.exit(f"{path} exceeds the limit of bytes")
        sys.stdout.buffer.write(text + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
