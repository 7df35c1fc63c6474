"""Simulated machines: files, folders and links as the engine packs and unpacks them, and as a test reads them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from posixpath import dirname

from runner.benchmarks.harbor.artifacts import carry, paths_of

SECRET = "what only the verifier has"
KINDS = {
    "pipe": tarfile.FIFOTYPE,
    "device": tarfile.CHRTYPE,
    "disk": tarfile.BLKTYPE,
    "odd": b"Z",
}


class Machine:
    """Absolute path -> `folder`, `file CONTENT`, `link TEXT`, `hard PATH`, or a word of `KINDS`."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {"/": "folder"}

    def have(self, nodes: dict[str, str]) -> Machine:
        """Add these, with the folders above them."""
        for path, node in nodes.items():
            above = dirname(path)
            while above not in self.nodes:
                self.nodes[above] = "folder"
                above = dirname(above)
            self.nodes[path] = node
        return self

    def real(self, path: str, *, last: bool = True) -> str | None:
        """Resolve the links of a path, its last part only if `last`; return None if it leads nowhere."""
        left, done, hops = [part for part in path.split("/") if part not in ("", ".")], "/", 0
        while left:
            part = left.pop(0)
            if part == "..":
                done = dirname(done)
                continue
            here = f"{done.rstrip('/')}/{part}"
            node = self.nodes.get(here)
            if node is None:
                return None
            if node.startswith("link ") and (left or last):
                text = node.removeprefix("link ")
                hops += 1
                if hops > 40:
                    return None
                left = [part for part in text.split("/") if part not in ("", ".")] + left
                done = "/" if text.startswith("/") else done
            elif left and node != "folder":
                return None
            else:
                done = here
        return done

    def read(self, path: str) -> str | None:
        """Return the content of a file, as `cat` prints it; None if there is none."""
        real = self.real(path)
        node = self.nodes.get(real or "", "")
        if node.startswith("hard "):
            return self.read(node.removeprefix("hard "))
        return node.removeprefix("file ") if node.startswith("file ") else None

    def pack(self, path: str, into: Path) -> None:
        """Write the tar that the engine makes of a path. Raises `FileNotFoundError`."""
        real = self.real(path)
        if real is None or self.nodes[real] != "folder":
            real = self.real(path, last=False)
        if real is None:
            raise FileNotFoundError(path)
        top = path.rstrip("/").rpartition("/")[2]
        with tarfile.open(into, "w") as tar:
            for one in sorted(self.nodes):
                if one == real or one.startswith(f"{real.rstrip('/')}/"):
                    tar.addfile(*self._member(one, top + one[len(real) :], real, top))

    def _member(self, path: str, name: str, real: str, top: str) -> tuple[tarfile.TarInfo, io.BytesIO]:
        node = self.nodes[path]
        other = node.removeprefix("hard ")
        if other != node and not other.startswith(
            f"{real.rstrip('/')}/"
        ):  # the first name in a tar is a file
            node = self.nodes.get(other, node)
        kind, _, text = node.partition(" ")
        member = tarfile.TarInfo(name)
        member.mode, member.uid = 0o6755, 1000
        member.pax_headers = {"SCHILY.xattr.security.capability": "x"}
        content = text.encode() if kind == "file" else b""
        member.size = len(content)
        member.type = {"file": tarfile.REGTYPE, "folder": tarfile.DIRTYPE, "link": tarfile.SYMTYPE}.get(
            kind, KINDS.get(kind, tarfile.LNKTYPE)
        )
        member.linkname = text if kind == "link" else top + text[len(real) :] if kind == "hard" else ""
        return member, io.BytesIO(content)

    def unpack(self, tar: Path) -> None:
        """Unpack at the root, as the engine does: nodes in the way are replaced, and folders are merged."""
        with tarfile.open(tar) as archive:
            for member in archive:
                path = f"/{member.name}"
                if member.isdir():
                    if self.nodes.get(path) != "folder":
                        self._remove(path)
                    self.nodes[path] = "folder"
                    continue
                self._remove(path)
                handle = archive.extractfile(member) if member.isreg() else None
                self.nodes[path] = (
                    f"link {member.linkname}"
                    if member.issym()
                    else f"file {handle.read().decode() if handle else ''}"
                    if member.isreg()
                    else f"hard /{member.linkname}"
                    if member.islnk()
                    else "pipe"
                )

    def _remove(self, path: str) -> None:
        for one in [one for one in self.nodes if one == path or one.startswith(f"{path}/")]:
            del self.nodes[one]


def travel(agent: Machine, judge: Machine, at: str, folder: Path) -> tuple[str, ...]:
    """Carry one artifact from one machine to the other; return the paths that were left out."""
    taken, carried, fetched, there = (
        folder / f"{name}.tar" for name in ("taken", "carried", "fetched", "there")
    )
    numbers = iter(range(1000))

    def fetch(path: str) -> Path | None:
        tar = fetched.with_name(f"fetched-{next(numbers)}.tar")
        try:
            agent.pack(path, tar)
        except FileNotFoundError:
            return None
        return tar

    def present() -> frozenset[str]:
        try:
            judge.pack(at, there)
        except FileNotFoundError:
            return frozenset()
        return paths_of(there, at)

    agent.pack(at, taken)
    left_out = carry(taken, at, carried, fetch, present)
    judge.unpack(carried)
    return left_out
