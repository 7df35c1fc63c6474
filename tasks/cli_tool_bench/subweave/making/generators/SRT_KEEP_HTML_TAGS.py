"""HTML tags that stay as they are."""

from _cues import cues, failing, run, stamp, strange, tagged, vtt
from fuzz import Case, quote

FLAG = "--srt-keep-html-tags"


def rich(draw):
    """Return SubRip most lines of which have tags."""
    rows = []
    for number, (start, end, lines) in enumerate(cues(draw), 1):
        lines = tagged(
            draw,
            [
                f"<{draw.choice(('i', 'b', 'font face=x', 'I', 'ruby', 'u'))}>{text}"
                if draw.chance(0.5)
                else text
                for text in lines
            ],
        )
        rows.append(f"{number}\n{stamp(start)} --> {stamp(end)}\n" + "".join(f"{text}\n" for text in lines))
    return "\n".join(rows)


def common(draw):
    """Return a case that rewrites or converts a file with tags."""
    name = draw.file("srt")
    options = FLAG + draw.choice(
        (
            "",
            "",
            "",
            " --to vtt",
            " --to tmp",
            " --srt-keep-ssa-tags",
            " --srt-keep-unknown-html-tags",
            " --clean",
            " --shift 2s",
            " --to microdvd --fps 25",
        )
    )
    text = rich(draw)
    if draw.chance(0.2):
        name, text = draw.file("vtt"), vtt(draw, cues(draw), 1)
    if draw.chance(0.15):
        return Case(f"{draw.tool} {options} < {quote(name)}", {name: text})
    return Case(f"{draw.tool} {options} {quote(name)}", {name: text})


def boundary(draw):
    """Return a case with odd tags, or a file at the edge of its format."""
    if draw.chance(0.5):
        odd = draw.choice(
            (
                "<>",
                "<i",
                "i>",
                "</i>",
                "<i><i>x",
                "< b >y</ b >",
                "<3",
                "a < b > c",
                "<b\nc>",
                "<i>{\\i1}x{\\i0}</i>",
                "&lt;i&gt;",
                "<日本>",
                "<i/>",
                "{<i>}",
            )
        )
        return Case(
            f"{draw.tool} {FLAG} odd.srt",
            {"odd.srt": f"1\n00:00:01,000 --> 00:00:02,000\n{draw.word()} {odd} {draw.word()}\n"},
        )
    kind, name, text = strange(draw)
    return (
        run(draw, f"{FLAG}", name, text, kind)
        if kind in ("srt", "vtt")
        else Case(f"{draw.tool} {FLAG} two.srt", {"two.srt": rich(draw) + "\n\n"})
    )


def error(draw):
    """Return a case with a missing or unreadable file, or wrong usage."""
    if draw.chance(0.2):
        return Case(
            f"{draw.tool} {FLAG}={draw.choice(('yes', 'no', draw.word()))} a.srt", {"a.srt": rich(draw)}
        )
    return failing(draw, FLAG)
