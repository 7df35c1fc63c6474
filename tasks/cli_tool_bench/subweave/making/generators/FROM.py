"""Formats that are read without detection."""

from _cues import EXTENSION, cues, document, run, strange, written
from fuzz import Case

FLAG = ("-f", "--from")
KINDS = ("srt", "srt", "vtt", "microdvd", "mpl2", "tmp", "ass", "ssa")


def common(draw):
    """Return a case that names the right format, or another one for the same text."""
    kind = draw.choice(KINDS)
    text = written(draw, kind, cues(draw))
    to = draw.choice(("srt", "vtt", "tmp", "mpl2"))
    asked = kind
    if draw.chance(0.3):
        kind, asked = draw.choice(
            (
                ("srt", "vtt"),
                ("vtt", "srt"),
                ("srt", "tmp"),
                ("tmp", "srt"),
                ("ass", "srt"),
                ("mpl2", "tmp"),
                ("srt", "mpl2"),
            )
        )
        text = written(draw, kind, cues(draw))
    if draw.chance(0.2) and kind == "srt":
        text = f"WEBVTT\n\n{text}" if draw.chance(0.5) else f"[Script Info]\n{text}"
        asked = "srt"
    name = f"{draw.word()}.{draw.choice((EXTENSION[kind], 'dat', 'subs'))}"
    return run(draw, f"{draw.choice(FLAG)} {asked} --to {to}", name, text, asked, to)


def boundary(draw):
    """Return a case with an empty file or another format than the named one."""
    asked = draw.choice(("srt", "vtt", "mpl2", "tmp"))
    name = draw.file("dat")
    if draw.chance(0.5):
        text = draw.choice(("", "\n", draw.text(2), "1\n", '{"info": 1}', "日本\n"))
    else:
        _, _, text = strange(draw)
    to = draw.choice(("srt", "vtt", "tmp"))
    return run(draw, f"{draw.choice(FLAG)} {asked} --to {to}", name, text, asked, to)


def error(draw):
    """Return a case with an unknown format, or a file that cannot be read so."""
    kind, name, text = document(draw, ("srt", "vtt", "tmp", "mpl2"))
    if draw.chance(0.35):
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} {draw.choice(('SRT', 'sub', 'auto', 'subrip', 'txt', draw.word()))} {name}",
            {name: text},
        )
    if draw.chance(0.4):
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} json {draw.choice(('', '-t srt '))}{name}", {name: text}
        )
    if draw.chance(0.2):
        return Case(
            f"{draw.tool} {draw.choice(FLAG)} ass --to srt < {name}",
            {name: "[V4+ Styles]\n[Events]\nDialogue: 0,soon,later,Default,,0,0,0,," + draw.word() + "\n"},
        )
    return Case(
        f"{draw.tool} {draw.choice(FLAG)} srt none-{draw.word()}.srt {draw.choice(('', '-t vtt'))}".strip()
    )
