r"""Look for the answers of tasks in folders of a sandbox, by names of packages and by content of files.

Runs in a sandbox, on the `python` runtime (standard library only). `answers_in_reach` imports it, so that answers and
what is searched are cut into the same pieces.

    python3 - WANTED.json  {"answers": {KEY: {"packages": {ECOSYSTEM: [NAME]}, "files": [FILE]}},
                                             "parts": {NAME: FOLDER}, "without": [FOLDER]}
                                            FILE: [name, [piece], [literal]], each byte a character
    prints {PART: {KEY: {"path": .., "what": ..}}}: the first place of an answer, and its relation to the answer

A *piece* is a run of at least `LEAST` characters between quotes, backslashes, braces, `$`, `%`, backquotes and line
ends, written as such or as `\n`, `\r` and `\t`. Code has the same pieces however it is quoted, also as a string in a
source map, and what a bundler writes keeps the pieces of its literals. Bytecode without a source is read for its
constants, and compressed files and git's objects are opened.

Limits: machine code shows only its text between control characters. A copy whose lines and literals were all rewritten
is another program. Archives within archives, base64 and what git stores as a difference are not opened.
"""

import bz2
import gzip
import json
import lzma
import marshal
import os
import re
import sys
import types
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from importlib.util import MAGIC_NUMBER
from typing import Any

LEAST = 12
"""Shortest piece, in characters."""
_OUT = rb"\x00-\x1f\x7f\"'`\\{}$%"
PIECE = re.compile(rb"[^ " + _OUT + rb"][^" + _OUT + rb"]{%d,}" % (LEAST - 1))
_ESCAPES = (rb"\n", rb"\r", rb"\t")
CHUNK = 1 << 22
"""Size of what is searched at once, in bytes."""
MOST = 1 << 28
"""Largest number of bytes that are read out of one compressed file."""
COPIED = 0.6
"""Share of a file's pieces, or of its literals, that makes another file a copy. Unrelated files of the shipped
installations and tasks share up to 0.50."""
FEWEST_PIECES, FEWEST_LITERALS = 20, 4
"""Fewest pieces, and literals, by which a file can be recognised."""
_MANIFESTS = {
    "METADATA": ("pypi", re.compile(rb"^Name: *(\S+)", re.MULTILINE)),
    "PKG-INFO": ("pypi", re.compile(rb"^Name: *(\S+)", re.MULTILINE)),
    "go.mod": ("go", re.compile(rb"^module +(\S+)", re.MULTILINE)),
    "modules.txt": ("go", re.compile(rb"^# (\S+) v", re.MULTILINE)),
    "status": ("debian", re.compile(rb"^(?:Package|Source): *(\S+)", re.MULTILINE)),
}
_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open}
_LOOSE = (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda")
"""First bytes of what zlib packed, such as git's objects."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_OFFSET_DELTA, _NAMED_DELTA = 6, 7
"""Kinds of objects in git's packs that are stored as a difference."""
_PACK_CHUNK = 1 << 14
_BROKEN = (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def pieces(content: bytes) -> Iterator[bytes]:
    """Yield the pieces of a text, repeated ones too."""
    return (piece for piece in _runs(content) if len(piece) >= LEAST)


def _runs(content: bytes) -> Iterator[bytes]:
    for escape in _ESCAPES:
        content = content.replace(escape, b"\n")
    return map(bytes.rstrip, PIECE.findall(content))


def normalised(ecosystem: str, name: str) -> str:
    """Return a package's name as its registry compares it."""
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "pypi" else name


def search(wanted: dict[str, Any]) -> dict[str, dict[str, dict[str, str]]]:
    """Return, for each part, the answers that were found in it."""
    sought = _Sought(wanted["answers"])
    without = {os.path.normpath(folder) for folder in wanted["without"]}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for part, root in wanted["parts"].items():
        hits: dict[str, dict[str, str]] = {}
        for path in _files(root, without):
            for key, what in sought.in_file(path):
                hits.setdefault(key, {"path": path, "what": what})
        found[part] = hits
    return found


def _files(root: str, without: set[str]) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if os.path.join(folder, name) not in without)
        for name in sorted(names):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and not _has_source(folder, name):
                yield path


def _has_source(folder: str, name: str) -> bool:
    """Return whether a file is bytecode whose source lies beside its folder."""
    if os.path.basename(folder) != "__pycache__" or not name.endswith(".pyc"):
        return False
    return os.path.isfile(os.path.join(os.path.dirname(folder), f"{name.partition('.')[0]}.py"))


class _Sought:
    """Index of the answers, by which one pass over a file finds them all."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self._names: dict[tuple[str, str], list[str]] = {}
        for key, answer in answers.items():
            for ecosystem, names in answer["packages"].items():
                for name in names:
                    self._names.setdefault((ecosystem, normalised(ecosystem, name)), []).append(key)
        self._files = [
            (key, name, *({piece.encode("latin-1") for piece in part} for part in parts))
            for key, answer in answers.items()
            for name, *parts in answer["files"]
        ]
        self._pieces = set().union(*(part for _, _, *parts in self._files for part in parts))

    def in_file(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield each answer that a file names as a package or holds, and the relation in words."""
        try:
            with open(path, "rb") as file:
                start = file.read(CHUNK)
                yield from self._named(path, start)
                packed = False
                for text in _texts(path, file, start):
                    packed = True
                    yield from self._held(text)
                if not packed:
                    yield from self._held(_chunks(file, start))
        except OSError:
            return  # gone or unreadable, also for an agent

    def _named(self, path: str, start: bytes) -> Iterator[tuple[str, str]]:
        base = os.path.basename(path)
        if base == "package.json" and "/node_modules/" in path:
            try:
                names = [("npm", str(json.loads(start)["name"]))]
            except (ValueError, LookupError, TypeError, RecursionError):
                names = []
        else:  # older versions of setuptools write a file in place of a folder
            base = "PKG-INFO" if base.endswith(".egg-info") else base
            ecosystem, pattern = _MANIFESTS.get(base, ("", None))
            names = (
                [(ecosystem, name.decode(errors="replace")) for name in pattern.findall(start)]
                if pattern
                else []
            )
        for ecosystem, name in names:
            for key in self._names.get((ecosystem, normalised(ecosystem, name)), ()):
                yield key, f"belongs to the package {name}"

    def _held(self, chunks: Iterable[bytes]) -> Iterator[tuple[str, str]]:
        hits: set[bytes] = set()
        for chunk in chunks:
            hits |= self._pieces.intersection(_runs(chunk))
        if len(hits) < FEWEST_LITERALS:
            return
        for key, name, all_of_it, literals in self._files:
            if _copied(hits, all_of_it, FEWEST_PIECES):
                yield key, f"is a copy of {name}"
            elif _copied(hits, literals, FEWEST_LITERALS):
                yield key, f"holds the literals of {name}"


def _copied(hits: set[bytes], pieces: set[bytes], fewest: int) -> bool:
    return len(pieces) >= fewest and len(hits & pieces) >= max(fewest, COPIED * len(pieces))


def _chunks(file: Any, start: bytes) -> Iterator[bytes]:
    """Yield a file's content in chunks that end with a line, so that few pieces are cut."""
    rest, taken = start, len(start)
    while rest:
        more = file.read(CHUNK) if taken < MOST * 4 else b""
        taken += len(more)
        cut = rest.rfind(b"\n") + 1 if more else 0
        yield rest[: cut or len(rest)]
        rest = rest[cut or len(rest) :] + more


def _texts(path: str, file: Any, start: bytes) -> Iterator[Iterable[bytes]]:
    """Yield the contents of a file that has to be unpacked or decoded."""
    try:
        if path.endswith(".pyc") and start[:4] == MAGIC_NUMBER:
            yield ["\n".join(_constants(marshal.loads(start[16:]))).encode(errors="replace")]  # noqa: S302 - in a sandbox
        elif opened := next((how for magic, how in _PACKED.items() if start.startswith(magic)), None):
            file.seek(0)
            with opened(file) as unpacked:
                yield [unpacked.read(MOST)]
        elif b"PK\x03\x04" in start and zipfile.is_zipfile(file):
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    with archive.open(member) as unpacked:
                        yield [unpacked.read(MOST)]
        elif start.startswith(_UTF_16):
            yield [(start + file.read(MOST)).decode("utf-16").encode()]
        elif start.startswith(_LOOSE):
            yield [zlib.decompressobj().decompress(start + file.read(MOST), MOST)]
        elif start.startswith(b"PACK"):
            for content in _pack_objects(memoryview(start + file.read(MOST))):
                yield [content]
    except (*_BROKEN, TypeError, LookupError):
        return  # the first bytes were misleading
    finally:
        file.seek(len(start))


def _pack_objects(pack: memoryview) -> Iterator[bytes]:
    """Yield the objects in a pack of git's; if one is stored as a difference, only what is new in it."""
    at = 12
    for _ in range(int.from_bytes(pack[8:12])):
        kind = pack[at] >> 4 & 7
        at = _after_number(pack, at)
        if kind == _OFFSET_DELTA:
            at = _after_number(pack, at)
        elif kind == _NAMED_DELTA:
            at += 20
        stream, parts = zlib.decompressobj(), []
        while not stream.eof:
            parts.append(stream.decompress(pack[at : at + _PACK_CHUNK]))
            if at >= len(pack):
                return
            at += _PACK_CHUNK
        at = min(at, len(pack)) - len(stream.unused_data)
        yield b"".join(parts)


def _after_number(pack: memoryview, at: int) -> int:
    while pack[at] & 0x80:
        at += 1
    return at + 1


def _constants(code: Any) -> Iterator[str]:
    if isinstance(code, str):
        yield code
    elif isinstance(code, tuple | frozenset):
        for item in code:
            yield from _constants(item)
    elif isinstance(code, types.CodeType):
        yield from _constants(code.co_consts)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as request:
        print(json.dumps(search(json.load(request))))
