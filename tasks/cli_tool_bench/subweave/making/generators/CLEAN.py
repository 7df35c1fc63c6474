"""Subtitles without drawings, comments, duplicates and styling."""

from _cues import FPS, cues, document, failing, line, run, srt, strange, written


def doubled(draw):
    """Return subtitles some of which come twice, are nearly empty or drawings."""
    made = cues(draw, draw.integer(2, 4))
    start, end, lines = draw.choice(made)
    made.insert(draw.integer(0, len(made)), (start, end, draw.choice((lines, lines, [line(draw)]))))
    if draw.chance(0.5):
        start, end, _ = draw.choice(made)
        made.append(
            (
                start,
                end + draw.choice((0, 0, 10)),
                [
                    draw.choice(
                        ("x", "-", "♪", "{\\p1}m 0 0 l 1 1", "{\\an8}", "ok", "<i>y</i>", "{\\p0}fine")
                    )
                ],
            )
        )
    return made


def common(draw):
    """Return a case that cleans a file."""
    kind = draw.choice(("srt", "srt", "ass", "ass", "ssa", "vtt", "microdvd", "mpl2", "tmp"))
    kind, name, text = document(draw, (kind,), doubled(draw))
    to = (
        draw.choice(("srt", "vtt", "tmp", "mpl2", "srt", "microdvd"))
        if kind in ("ass", "ssa") or draw.chance(0.3)
        else ""
    )
    options = "--clean" + (f" --to {to}" if to else "")
    if to == "microdvd" and kind != "microdvd":
        options += f" --fps {draw.choice(FPS)}"
    elif draw.chance(0.15):
        options += draw.choice((" --shift 1s", " --srt-keep-ssa-tags"))
    return run(draw, options, name, text, kind, to)


def boundary(draw):
    """Return a case from which little or nothing is left."""
    if draw.chance(0.4):
        made = [
            (n * 1000, n * 1000 + 900, [draw.choice(("", "a", " ", "🙂", "é", "日", "{\\b1}c{\\b0}", "ab"))])
            for n in range(draw.integer(1, 5))
        ]
        return run(draw, "--clean", "short.srt", srt(draw, made, 0), "srt")
    if draw.chance(0.3):
        return run(draw, "--clean --to srt", "clip.ass", written(draw, "ass", doubled(draw)), "ass")
    kind, name, text = strange(draw)
    return run(draw, "--clean", name, text, kind)


def error(draw):
    """Return a case with a missing or unreadable file, or wrong usage."""
    return failing(draw, "--clean")
