"""Subtitles that are delayed."""

from _cues import document, failing, run, strange
from fuzz import Case, quote

FLAG = "--shift"
TO = ("", "", "", "srt", "vtt", "tmp", "mpl2")
KINDS = ("srt", "srt", "srt", "vtt", "microdvd", "mpl2", "tmp")


def span(draw):
    """Return a time."""
    n = draw.integer(0, 59)
    return draw.choice(
        (
            f"{n}s",
            f"{draw.number(0, 10)}s",
            f"{n}m{draw.integer(0, 59)}s",
            f"{draw.integer(1, 2000)}ms",
            f"{draw.integer(0, 3)}h{n}m",
            f".{draw.integer(1, 99)}s",
            f"1h{n}m{draw.integer(1, 59)}.5s",
            f"{n}s{draw.integer(1, 999)}ms",
            f"{draw.number(0, 2)}m",
        )
    )


def common(draw):
    """Return a case that moves all subtitles."""
    kind, name, text = document(draw, KINDS)
    to = draw.choice(TO)
    options = f"{FLAG} {span(draw)}" + (f" -t {to}" if to else "")
    return run(draw, options, name, text, kind, to)


def boundary(draw):
    """Return a case with an unusual time, or a file at the edge of its format."""
    time = draw.choice(
        (
            "0s",
            "100h",
            "99h59m",
            "0.0004s",
            "0.0005s",
            "0.0015s",
            "1",
            "''",
            "abc",
            "5s3s",
            "1m1m",
            "3 s",
            "-5s",
            "1s2m",
            "s",
            "1.2.3s",
            "5S",
            "2ms5",
            "1d2h",
            "s5m",
        )
    )
    if time == "-5s":
        time = "=-5s"
    kind, name, text = strange(draw) if draw.chance(0.4) else document(draw, ("srt", "vtt"))
    return run(draw, f"{FLAG} {time}".replace(" =", "="), name, text, kind)


def error(draw):
    """Return a case with an incomplete time, with two ways of retiming, or with a missing file."""
    _, name, text = document(draw, ("srt", "vtt"))
    if draw.chance(0.4):
        others = ["--shift 1s", "--shift-back 1s", "--transform-framerate 25 24"]
        others = [one for one in others if one.split()[0] != FLAG]
        return Case(f"{draw.tool} {FLAG} {span(draw)} {draw.choice(others)} {name}", {name: text})
    if draw.chance(0.3):
        return Case(
            f"{draw.tool} {quote(name)} {draw.choice((FLAG, f'{FLAG} 1s --{draw.word()}', f'{FLAG} -5s', f'{FLAG} -{span(draw)}'))}",
            {name: text},
        )
    return failing(draw, f"{FLAG} {span(draw)}")
