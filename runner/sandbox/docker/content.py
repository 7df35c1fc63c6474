"""Prints the digest of a bundle's content: paths, types, permissions, targets of links, and contents of files.

Runs in the container that builds a bundle, as its last step (standard library only). Times and owners are left out:
times differ from build to build, and everything is root's.
"""

import hashlib
import os
import stat
import sys
from collections.abc import Iterator


def digest(root: str) -> str:
    """Return the SHA-256, in hexadecimal, of everything below a folder."""
    whole = hashlib.sha256()
    for path in sorted(_paths(root)):
        mode = os.lstat(path).st_mode
        name = os.fsencode(os.path.relpath(path, root))
        whole.update(b"%d %s %o %s\n" % (len(name), name, mode, _content(path, mode)))
    return whole.hexdigest()


def _paths(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield os.path.join(folder, name)


def _content(path: str, mode: int) -> bytes:
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path)).hex().encode()
    if not stat.S_ISREG(mode):
        return b"-"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode()


if __name__ == "__main__":
    print(digest(sys.argv[1]))
