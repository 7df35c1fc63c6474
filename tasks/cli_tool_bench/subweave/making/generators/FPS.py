"""The frame rate of MicroDVD files."""

from _cues import FPS, cues, document, microdvd, run, strange, written
from fuzz import Case


def common(draw):
    """Return a case that reads or writes frames."""
    rate = draw.choice((*FPS, "12", "59.94", "100"))
    if draw.chance(0.5):
        text = microdvd(draw, cues(draw), draw.choice(("-", "", "")))
        to = draw.choice(("", "srt", "vtt", "tmp", "mpl2", "microdvd"))
        kind = "microdvd"
    else:
        kind = draw.choice(("srt", "vtt", "tmp", "mpl2", "ass"))
        text = written(draw, kind, cues(draw))
        to = "microdvd"
    options = f"--fps {rate}" + (f" --to {to}" if to else "")
    if to in ("", "microdvd") and draw.chance(0.25):
        options += " --sub-no-write-fps-declaration"
    if draw.chance(0.15):
        options += draw.choice((" --shift 1s", " --clean", " --transform-framerate 25 24"))
    return run(draw, options, f"{draw.word()}.{'sub' if kind == 'microdvd' else kind}", text, kind, to)


def boundary(draw):
    """Return a case with an unusual rate, a rate that does not matter, or a file at the edge of its format."""
    rate = draw.choice(("0.001", "1e3", "1000", "23.976023976", "1e-3", "25.", ".5", "120", "1_0"))
    way = draw.integer(0, 2)
    if way == 0:
        kind, name, text = strange(draw)
        return run(draw, f"--fps {rate}", name, text, kind)
    if way == 1:
        kind, name, text = document(draw, ("srt", "vtt", "tmp"))
        return run(draw, f"--fps {rate} -t microdvd", name, text, kind, "microdvd")
    return run(
        draw,
        f"--fps {rate} -t srt",
        "clip.sub",
        microdvd(draw, cues(draw), draw.choice(("-", "25"))),
        "microdvd",
        "srt",
    )


def error(draw):
    """Return a case with a rate that is none, or without a rate."""
    way = draw.integer(0, 3)
    if way == 0:
        _, name, text = document(draw, ("srt", "microdvd"))
        return Case(
            f"{draw.tool} --fps {draw.choice(('0', '-25', 'x', '24/1', '25fps', '0.0', '24,5', 'nan'))} {name}",
            {name: text},
        )
    if way == 1:
        return Case(
            f"{draw.tool} {draw.choice(('', '--to srt ', '--to vtt '))}clip.sub",
            {"clip.sub": microdvd(draw, cues(draw), "-", 0)},
        )
    if way == 2:
        _, name, text = document(draw, ("srt", "vtt", "tmp"))
        return Case(f"{draw.tool} --to microdvd {name}", {name: text})
    return Case(f"{draw.tool} --fps {draw.choice(FPS)} none-{draw.word()}.sub")
