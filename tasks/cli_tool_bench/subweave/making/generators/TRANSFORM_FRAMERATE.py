"""Times that are multiplied by the ratio of two frame rates."""

from _cues import FPS, document, failing, run, strange
from fuzz import Case

FLAG = "--transform-framerate"
TO = ("", "", "", "srt", "vtt", "tmp", "mpl2")


def common(draw):
    """Return a case that stretches times."""
    kind, name, text = document(draw)
    to = draw.choice(TO)
    first, second = draw.sample((*FPS, "12.5", "60", "100", "24.0", "1"), 2)
    return run(draw, f"{FLAG} {first} {second}" + (f" --to {to}" if to else ""), name, text, kind, to)


def boundary(draw):
    """Return a case with unusual rates, or a file at the edge of its format."""
    rates = draw.choice(
        ("25 25", "1e-9 1", "1000000 1", "0.5 0.25", "1e2 1e1", "3 7", "inf 1", "1 inf", "nan 1", ".1 .3")
    )
    kind, name, text = strange(draw) if draw.chance(0.6) else document(draw)
    return run(draw, f"{FLAG} {rates}", name, text, kind)


def error(draw):
    """Return a case with rates that are none, or with a missing file."""
    _, name, text = document(draw, ("srt", "vtt", "tmp"))
    if draw.chance(0.5):
        rates = draw.choice(
            ("0 25", "25 0", "-1 25", "x 25", "25", "25 y", "25:24", "25 -24", "'' 1", "25/1 24", "24,5 25")
        )
        return Case(f"{draw.tool} {name} {FLAG} {rates}", {name: text})
    if draw.chance(0.3):
        return Case(
            f"{draw.tool} {FLAG} 25 24 {draw.choice(('--shift 1s', '--shift-back 2s'))} {name}", {name: text}
        )
    return failing(draw, f"{FLAG} 25 {draw.choice(FPS)}")
