"""Replace the published names of a reference by the name that its task gives to the tool.

In source code only literals change, since a function or a module may have the same name, and the new name need not be
an identifier. Other files, such as a README or a package.json, change as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from runner.errors import TaskError

REQUIREMENTS = {"node_modules", "vendor"}
"""Folders of packages that the reference requires. They are not its own files."""
_SHORT = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_PYTHON = re.compile(
    rf"(?P<kept>#[^\n]*)|\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|{_SHORT}", re.DOTALL
)
_BRACES = re.compile(
    rf"(?P<kept>//[^\n]*|/\*.*?\*/|\bimport\s*\([^)\"']*\"[^)]*\)|\b(?:require|import)\s*\(?\s*(?:{_SHORT})"
    rf"|\bfrom\s*(?:{_SHORT}))|{_SHORT}|`(?:\\.|[^`\\])*`",
    re.DOTALL,
)
_LITERALS = {".py": _PYTHON, **dict.fromkeys((".js", ".mjs", ".cjs", ".ts", ".jsx", ".tsx", ".go"), _BRACES)}
"""Suffix of source code -> pattern of its literals, and of what is `kept`: comments, and names of imported modules."""


def rename(names: Iterable[str], tool: str, globs: Iterable[str], source: Path) -> None:
    """Replace whole words in files of a folder: `Usage: name`, but not `name.x`, `x/name` or `--name`.

    Raises `TaskError` for a glob without files, and for a file that is not UTF-8 text.
    """
    longest = sorted(names, key=len, reverse=True)
    if not longest:
        return
    words = re.compile(
        rf"(?:(?<![\w./@-])|(?<=\\[nt]))(?:{'|'.join(map(re.escape, longest))})(?![\w/-]|\.\w)"
    )

    def put(found: re.Match[str]) -> str:
        return found[0] if found["kept"] else words.sub(lambda _: tool, found[0])

    for file in dict.fromkeys(path for glob in globs for path in _files(glob, source)):
        try:
            text = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise TaskError(
                f"renamed: {file.relative_to(source)} is not UTF-8 text: leave it out."
            ) from error
        literals = _LITERALS.get(_suffix(file, text))
        changed = literals.sub(put, text) if literals else words.sub(lambda _: tool, text)
        file.write_bytes(changed.encode())


def _suffix(file: Path, text: str) -> str:
    """Return a file's suffix. For a script without one, its first line tells which it would have."""
    first = text.partition("\n")[0]
    if file.suffix or not first.startswith("#!"):
        return file.suffix
    return ".js" if "node" in first else ".py" if "python" in first else ""


def _files(glob: str, source: Path) -> Iterator[Path]:
    """Yield the reference's own files that a path or glob means, without links. Raises `TaskError` for none."""
    own = [
        path
        for path in sorted(source.glob(glob))
        if path.is_file()
        and path.resolve() == source.resolve() / path.relative_to(source)
        and not REQUIREMENTS & set(path.relative_to(source).parts)
    ]
    if not own:
        raise TaskError(f"renamed: {glob!r} means none of the reference's own files: correct it.")
    yield from own
