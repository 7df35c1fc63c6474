"""Main languages of a project, by bytes of code (ExecutionAgent, section 2.3.2).

Pygments finds a file's language by its name, and by its content where languages share a name. Which formats are
programming languages, and which files are generated, are short rules after Linguist, which the paper uses and which
has no Python library.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from pygments.lexers import find_lexer_class, find_lexer_class_by_name, get_all_lexers
from pygments.util import ClassNotFound

from runner.benchmarks.project_setup.agent.project_files import Source, head, sources

MAIN_LANGUAGES: Final = 2
"""Largest number of main languages of a project: the paper chooses its projects by the first two."""
MAIN_SHARE: Final = 0.25
"""Smallest share of all code that makes a second language a main one."""
HEAD_BYTES: Final = 8_192
"""Number of bytes at the beginning of a file from which its language is found."""
MOST_BYTES: Final = 1 << 20
"""Largest file that counts as written by hand; larger ones are data or generated."""
LINE_CHARACTERS: Final = 500
"""Longest average line of a file that counts as written by hand."""
_SAME: Final = (
    "Ada, Awk, C, C#, C++, Clojure, COBOL, CoffeeScript, Common Lisp, Crystal, Cython, D, Dart, Elixir, Elm, Erlang, "
    "F#, Fortran, Gleam, Go, Groovy, Haskell, Haxe, Java, JavaScript, Julia, Kotlin, Lua, Nix, Objective-C, "
    "Objective-C++, OCaml, Perl, PHP, Pony, PowerShell, Prolog, Python, Racket, Ruby, Rust, Scala, Scheme, Smalltalk, "
    "Solidity, Standard ML, Swift, Tcl, TypeScript, Vala, Vue, Zig"
)
NAMES: Final = {name: name for name in _SAME.split(", ")} | {
    "Bash": "Shell",
    "CUDA": "Cuda",
    "Delphi": "Pascal",
    "EmacsLisp": "Emacs Lisp",
    "Fish": "Shell",
    "FortranFixed": "Fortran",
    "GAS": "Assembly",
    "JSX": "JavaScript",
    "Matlab": "MATLAB",
    "NASM": "Assembly",
    "Nimrod": "Nim",
    "Perl6": "Raku",
    "S": "R",
    "TSX": "TypeScript",
    "VB.net": "Visual Basic .NET",
    "systemverilog": "SystemVerilog",
    "verilog": "Verilog",
    "vhdl": "VHDL",
}
"""Pygments name -> Linguist name of every programming language; markup, configuration and data do not count."""
OWN: Final = {
    ".mts": "TypeScript",
    ".cts": "TypeScript",
    ".f95": "Fortran",
    ".f08": "Fortran",
    ".S": "Assembly",
    ".r": "R",
    ".gradle": "",
    ".inc": "",
}
"""Suffix -> language, where Pygments differs. Empty: the suffix says nothing about the language and does not count."""
_ELSEWHERE: Final = (
    "3rdparty, bower_components, deps, dist, doc, docs, documentation, examples, extern, external, man, third-party, "
    "third_party, thirdparty, vendor, vendored, _vendor"
)
ELSEWHERE: Final = frozenset(_ELSEWHERE.split(", "))
"""Folders of third-party code, build results and documentation, anywhere in a project."""
GENERATED: Final = (
    *("*.min.js", "*.bundle.js", "*_pb2.py", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h", "configure"),
    *("compile", "config.guess", "config.sub", "depcomp", "install-sh", "libtool", "ltmain.sh", "missing"),
    *("mkinstalldirs", "py-compile", "test-driver", "ylwrap", "versioneer.py"),
)
"""Names of generated files."""
_GENERATED = re.compile(
    r"@generated|\bDO NOT EDIT\b|\b(auto(matically)?[- ]?)?generated (by|from|automatically)\b|A Bison parser, made by",
    re.IGNORECASE,
)
_GENERATED_CHARACTERS: Final = 600
_SHEBANG = re.compile(r"#!\s*\S*?(?:/env\s+(?:-\S+\s+)*|/)([A-Za-z]+)[\d.]*(?=\s|$)")
_SHEBANG_CHARACTERS: Final = 200
_INTERPRETERS: Final = {"node": "javascript", "nodejs": "javascript", "dash": "sh"}
_BLANK = re.compile(r"\n\s*\n")
"""Runs of blank lines, on which expressions of Pygments take quadratic time."""
_OBJECTIVE_C = re.compile(
    r"^[ \t]*(@(interface|class|protocol|property|end|implementation)\b|#[ \t]*import\b)", re.MULTILINE
)
_CPP = re.compile(
    r"^[ \t]*(template[ \t]*<|class[ \t]+\w+[ \t]*(final[ \t]*)?(:[^:]|\{|$)"
    r"|(inline[ \t]+)?namespace([ \t]+[\w:]+)?[ \t]*(\{|$)"
    r"|using[ \t]+(namespace[ \t]|\w+[ \t]*=)|(public|private|protected)[ \t]*:|#[ \t]*include[ \t]*<[a-z_]+>)"
    r"|\b(std::\w|constexpr[ \t]+\w|nullptr\b)",
    re.MULTILINE,
)
"""Constructs of C++ that C does not have."""


def languages(project: Path, check: Callable[[], None] = lambda: None) -> dict[str, int]:
    """Return bytes of handwritten code per programming language, the largest first.

    `check` is called before each file, and may raise.
    """
    found: Counter[str] = Counter()
    for source in sources(project):
        check()
        if language := _language(project, source):
            found[language] += source.size
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def main_languages(found: dict[str, int]) -> tuple[str, ...]:
    """Return the main languages, the largest first."""
    least = MAIN_SHARE * sum(found.values())
    others = [language for language, size in list(found.items())[1:MAIN_LANGUAGES] if size >= least]
    return (*list(found)[:1], *others)


def _language(project: Path, source: Source) -> str | None:
    path = PurePosixPath(source.path)
    if _is_generated(path) or any(part in ELSEWHERE or part[0] == "." for part in path.parts[:-1]):
        return None
    candidates = _candidates(path)
    if not 0 < source.size <= MOST_BYTES or (path.suffix and not candidates):
        return None
    text = head(project, source, HEAD_BYTES)
    if _GENERATED.search(text[:_GENERATED_CHARACTERS]) or len(text) > LINE_CHARACTERS * (
        text.count("\n") + 1
    ):
        return None
    if text.startswith(("<?xml", "<!DOCTYPE")):  # Qt's translations are called .ts as well
        return None
    return _by_content(path, candidates, text) if candidates else _of_interpreter(text)


def _by_content(path: PurePosixPath, candidates: tuple[str, ...], text: str) -> str:
    if path.suffix == ".h":
        return "Objective-C" if _OBJECTIVE_C.search(text) else "C++" if _CPP.search(text) else "C"
    if path.suffix in OWN:
        return OWN[path.suffix]
    if len(candidates) == 1:
        return NAMES[candidates[0]]
    lexers = [lexer for name in candidates if (lexer := find_lexer_class(name))]
    dense = _BLANK.sub("\n", text)
    return NAMES[max(lexers, key=lambda lexer: (lexer.analyse_text(dense), lexer.priority)).name]


def _of_interpreter(text: str) -> str | None:
    """Return the language of a script without a suffix, from its first line."""
    match = _SHEBANG.match(text[:_SHEBANG_CHARACTERS])
    if match is None:
        return None
    try:
        return NAMES.get(find_lexer_class_by_name(_INTERPRETERS.get(match[1], match[1])).name)
    except ClassNotFound:
        return None


def _candidates(path: PurePosixPath) -> tuple[str, ...]:
    """Return the languages that a file of this name may be written in."""
    known = _by_suffix()
    return known.get(path.suffix) or known.get(path.suffix.lower(), ())


@cache
def _by_suffix() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {suffix: (name,) for suffix, name in OWN.items() if name}
    for name, _, patterns, _ in sorted(get_all_lexers(plugins=False)):
        suffixes = {pattern.removeprefix("*") for pattern in patterns} if name in NAMES else set()
        for suffix in suffixes.difference(OWN):
            found[suffix] = (*found.get(suffix, ()), name)
    return found


def _is_generated(path: PurePosixPath) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in GENERATED)
