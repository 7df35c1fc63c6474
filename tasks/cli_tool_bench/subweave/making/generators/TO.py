"""Conversions between formats."""

from _cues import OUT, document, failing, run, strange, FPS, cues
from fuzz import Case, quote

FLAG = ("-t", "--to")
KINDS = ("srt", "srt", "vtt", "microdvd", "mpl2", "tmp", "ass", "ssa")


def common(draw):
    """Return a case that converts a file."""
    kind, name, text = document(draw, KINDS)
    to = draw.choice((*OUT, "mpl2"))
    options = f"{draw.choice(FLAG)} {to}"
    if to == "microdvd" and kind != "microdvd":
        options += f" --fps {draw.choice(FPS)}"
        options += draw.choice(("", "", " --sub-no-write-fps-declaration"))
    elif to in ("srt", "vtt") and draw.chance(0.2):
        options += " --srt-keep-ssa-tags"
    return run(draw, options, name, text, kind, to)


def boundary(draw):
    """Return a case with a file at the edge of its format, or several files, some missing."""
    if draw.chance(0.3):
        files = {}
        for _ in range(2):
            _, name, text = document(draw, ("srt", "vtt", "ass", "tmp"))
            files[name] = text
        return Case(
            f"{draw.tool} --to {draw.choice(('srt', 'vtt', 'tmp'))} {' '.join(quote(n) for n in files)}{draw.choice(('', ' none.srt'))}",
            files,
        )
    kind, name, text = strange(draw)
    to = draw.choice((*OUT, "mpl2"))
    return run(
        draw,
        f"{draw.choice(FLAG)} {to} --fps {draw.choice(FPS)}"
        if to == "microdvd" and kind != "microdvd"
        else f"{draw.choice(FLAG)} {to}",
        name,
        text,
        kind,
        to,
    )


def error(draw):
    """Return a case without a frame rate, with an unknown format, or with a missing file."""
    if draw.chance(0.35):
        kind, name, text = document(draw, ("srt", "vtt", "mpl2", "tmp", "ass"), cues(draw))
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} {draw.choice(('microdvd', 'microdvd', 'mpl2', 'whisper_jax'))} {name}",
            {name: text},
        )
    if draw.chance(0.35):
        kind, name, text = document(draw)
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} {draw.choice(('SRT', 'sub', '.srt', 'webvtt', '', 'srt,vtt', draw.word()))} < {name}".replace(
                "  <", " '' <"
            ),
            {name: text},
        )
    return failing(draw, f"{draw.choice(FLAG)} {draw.choice(('srt', 'vtt', 'tmp'))}")
