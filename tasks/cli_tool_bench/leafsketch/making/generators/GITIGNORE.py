"""Obey files that tell what is ignored, or do not."""

from __future__ import annotations

from _forest import dressed, failing, forest
from fuzz import Case, Draw, quote


def rules(draw: Draw, paths: list[str]) -> str:
    """Return the text of an ignore file that concerns these paths, which are relative to its folder."""
    lines = []
    for _ in range(draw.integer(1, 4)):
        path = draw.choice(paths)
        parts = path.split("/")
        base = parts[-1]
        lines.append(
            draw.choice(
                (
                    base,
                    f"/{base}",
                    f"{parts[0]}/",
                    path,
                    f"/{path}",
                    "*.txt",
                    "*.md",
                    "*.log",
                    f"!{base}",
                    f"!{path}",
                    f"**/{base}",
                    f"{parts[0]}/**",
                    f"{parts[0]}/*",
                    "# comment",
                    "",
                    f"{base[:1]}*",
                    "*.[jt]s",
                    "v?",
                    f"{base}  ",
                )
            )
        )
    return draw.choice(("\n", "\n", "\r\n")).join([*lines, ""])


def repository(draw: Draw, depth: int = 3) -> tuple[str, dict[str, str]]:
    """Return a folder with ignore files, and the name of it."""
    top, files = forest(draw, depth)
    below = [path.removeprefix(f"{top}/") for path in files]
    inner = [path for path in below if "/" in path]
    files[f"{top}/.gitignore"] = rules(draw, below)
    if inner and draw.chance(0.5):
        folder = draw.choice(inner).split("/")[0]
        own = [path.removeprefix(f"{folder}/") for path in inner if path.startswith(f"{folder}/")]
        files[f"{top}/{folder}/.gitignore"] = rules(draw, own)
    if draw.chance(0.85):
        files[f"{top}/.git/HEAD"] = "ref: refs/heads/main\n"
    return top, files


def common(draw: Draw) -> Case:
    """Draw a repository."""
    top, files = repository(draw, draw.integer(1, 3))
    switch = draw.choice(("--gitignore", "--gitignore", "", "--no-gitignore"))
    options = f"{switch}{draw.choice(('', '', ' -a', ' -J', ' -L 2', ' -d'))}{dressed(draw, 1)}"
    return Case(f"{draw.tool} {draw.choice((top, './' + top, top + '/'))} {options}".strip(), files)


def boundary(draw: Draw) -> Case:
    """Start below a repository's top folder, above it, or with a marker that is a file."""
    top, files = repository(draw, 3)
    inner = sorted(
        {
            path.split("/")[1]
            for path in files
            if path.count("/") > 1 and not path.split("/")[1].startswith(".")
        }
    )
    switch = draw.choice(
        ("--gitignore", "--no-gitignore", "-a", "-a --no-gitignore", "-a --gitignore --prune", "--prune")
    )
    kind = draw.integer(0, 2)
    if kind == 0 and inner:
        return Case(f"{draw.tool} {quote(f'{top}/{draw.choice(inner)}')} {switch}", files)
    if kind == 1:
        outer = draw.word()
        return Case(
            f"{draw.tool} {outer} {switch}", {f"{outer}/{path}": text for path, text in files.items()}
        )
    files.pop(f"{top}/.git/HEAD", None)
    files[f"{top}/.git"] = "gitdir: ../elsewhere\n"
    return Case(f"{draw.tool} {top} {switch}", files)


def error(draw: Draw) -> Case:
    """Fail."""
    return failing(draw, draw.choice(("--gitignore", "--no-gitignore", "--gitignore -a")))
