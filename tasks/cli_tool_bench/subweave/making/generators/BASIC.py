"""Files that are read and written in their own format."""

from _cues import document, failing, run, strange
from fuzz import Case, quote


def common(draw):
    """Return a case that rewrites one to three files, or standard input."""
    if draw.chance(0.3):
        files = {}
        for _ in range(draw.integer(2, 3)):
            _, name, text = document(draw)
            files[f"{draw.choice(('', 'disc one/', 'b/'))}{name}"] = text
        return Case(f"{draw.tool} {' '.join(quote(name) for name in files)}", files)
    kind, name, text = document(draw)
    return run(draw, "", name, text, kind)


def boundary(draw):
    """Return a case with a file at the edge of its format."""
    kind, name, text = strange(draw)
    return run(draw, "", name, text, kind)


def error(draw):
    """Return a case with a missing or unreadable file, or wrong usage."""
    return failing(draw)
