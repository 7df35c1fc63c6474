"""Count the code of a tool, in files of an archive or of a folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath

SUFFIXES = {"python": (".py",), "javascript": (".js", ".mjs", ".cjs", ".ts", ".jsx", ".tsx"), "go": (".go",)}
NOT_THE_TOOL = {"test", "tests", "__tests__", "node_modules", "vendor", "dist"}
"""Names of folders whose files are not counted."""
COMMENT = {"python": ("#",), "javascript": ("//", "/*", "*"), "go": ("//", "/*", "*")}
"""Language -> texts with which a line begins that is only a comment."""
LANGUAGES = {
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), "JavaScript"),
    **dict.fromkeys((".ts", ".mts", ".cts", ".tsx"), "TypeScript"),
    **dict.fromkeys((".c", ".h"), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hpp"), "C++"),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".fish"), "Shell"),
    ".py": "Python",
    ".pyi": "Python",
    ".pyx": "Cython",
    ".go": "Go",
    ".s": "Assembly",
    ".rs": "Rust",
    ".java": "Java",
    ".rb": "Ruby",
    ".pl": "Perl",
    ".lua": "Lua",
    ".php": "PHP",
    ".css": "CSS",
    ".html": "HTML",
}
"""Suffix of a file -> its language."""
File = tuple[PurePosixPath, Callable[[], bytes]]
"""Path of a file below its project, and a function that reads it."""


def files_of(folder: Path, left_out: Callable[[PurePosixPath], bool]) -> Iterator[File]:
    """Yield the regular files of a folder."""
    for path in sorted(folder.rglob("*")):
        name = PurePosixPath(path.relative_to(folder))
        if path.is_file() and not path.is_symlink() and not left_out(name):
            yield name, path.read_bytes


def size(files: Iterable[File], language: str, not_the_tool: set[str] = NOT_THE_TOOL) -> dict[str, int]:
    """Return the numbers of `lines` and `files`, and the `depth` of the deepest file. Hidden files do not count.

    Lines are those of the language's files that are neither blank nor only a comment. Docstrings count.
    """
    lines = number = depth = 0
    for path, read in _counted(files, not_the_tool):
        number += 1
        depth = max(depth, len(path.parts) - 1)
        if path.suffix in SUFFIXES[language] and not path.name.endswith("_test.go"):
            lines += _lines(read(), COMMENT[language])
    return {"lines": lines, "files": number, "depth": depth}


def languages(files: Iterable[File], not_the_tool: set[str] = NOT_THE_TOOL) -> dict[str, float]:
    """Return each language's share of the lines of code, the largest first; empty if there are none."""
    found: Counter[str] = Counter()
    for path, read in _counted(files, not_the_tool):
        name = LANGUAGES.get(path.suffix)
        if name and not path.name.endswith((".d.ts", "_test.go")):
            found[name] += _lines(read(), ("#",) if name in ("Python", "Shell") else ("//", "/*", "*"))
    total = found.total()
    return {name: round(lines / total, 4) for name, lines in found.most_common() if lines}


def _counted(files: Iterable[File], not_the_tool: set[str]) -> Iterator[File]:
    for path, read in files:
        if not any(part.startswith(".") for part in path.parts) and not not_the_tool & set(path.parts):
            yield path, read


def _lines(content: bytes, comment: tuple[str, ...]) -> int:
    stripped = (line.strip() for line in content.decode(errors="replace").splitlines())
    return sum(bool(line) and not line.startswith(comment) for line in stripped)
