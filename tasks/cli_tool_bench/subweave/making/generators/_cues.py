"""What the generators of this tool share: subtitles, and files in the formats that the tool reads."""

from fuzz import Case, quote

EXTENSION = {
    "srt": "srt",
    "vtt": "vtt",
    "microdvd": "sub",
    "mpl2": "mpl",
    "tmp": "txt",
    "ass": "ass",
    "ssa": "ssa",
}
FPS = ("25", "23.976", "29.97", "30", "24", "50")
OUT = ("srt", "vtt", "microdvd", "tmp")
"""Formats that have a file extension and show no generator's name."""


def line(draw):
    """Return a line of text."""
    text = draw.choice(
        (
            draw.sentence(draw.integer(1, 5)),
            draw.sentence(3),
            " ".join(draw.words(2)),
            "- " + draw.word() + "!",
            "Größe: 日本",
            "♪ la la ♪",
        )
    )
    return text


def cues(draw, count=0, high=200_000):
    """Return subtitles as (start, end, lines), times in milliseconds, in ascending order."""
    at = draw.choice((0, 500, 1000, draw.integer(0, high)))
    made = []
    for _ in range(count or draw.integer(1, 5)):
        length = draw.choice((500, 1000, 1500, 2040, draw.integer(100, 6000)))
        made.append((at, at + length, [line(draw) for _ in range(draw.choice((1, 1, 2, 2, 3)))]))
        at += length + draw.choice((0, 40, 500, 1000, draw.integer(0, 90_000)))
    return made


def tagged(draw, lines):
    """Return lines with HTML tags and override tags."""
    made = []
    for text in lines:
        way = draw.integer(0, 11)
        tag = draw.choice(("i", "b", "u", "s"))
        if way <= 2:
            text = f"<{tag}>{text}</{tag}>"
        elif way == 3:
            text = f'<font color="#ff0000">{text}</font>'
        elif way == 4:
            text = "{\\an8}" + text
        elif way == 5:
            first, _, rest = text.partition(" ")
            text = f"{first} <{tag}>{rest}</{tag}>"
        elif way == 6:
            text = "{\\i1}" + text + "{\\i0} end"
        elif way == 7:
            text = f"< i >{text}</ i ><blink>x</blink>"
        elif way == 8:
            text = f"<i>{text}"
        made.append(text)
    return made


def stamp(ms, mark=","):
    """Return HH:MM:SS,mmm."""
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}{mark}{ms % 1000:03}"


def srt(draw, made, html=0.4):
    """Return SubRip."""
    parts = []
    for number, (start, end, lines) in enumerate(made, 1):
        lines = tagged(draw, lines) if draw.chance(html) else lines
        parts.append(f"{number}\n{stamp(start)} --> {stamp(end)}\n" + "".join(f"{text}\n" for text in lines))
    return "\n".join(parts) + draw.choice(("", "\n"))


def vtt(draw, made, html=0.3):
    """Return WebVTT."""
    parts = ["WEBVTT" + draw.choice(("", " - " + draw.word())) + "\n"]
    if draw.chance(0.3):
        parts.append(f"NOTE {draw.word()}\n")
    for start, end, lines in made:
        lines = tagged(draw, lines) if draw.chance(html) else lines
        times = (stamp(start, "."), stamp(end, "."))
        times = [t[3:] if t.startswith("00:") and draw.chance(0.4) else t for t in times]
        parts.append(
            " --> ".join(times)
            + draw.choice(("", "", " align:start"))
            + "\n"
            + "".join(f"{text}\n" for text in lines)
        )
    return "\n".join(parts)


def microdvd(draw, made, fps="", html=0.3):
    """Return MicroDVD with a declared frame rate, or without one if `fps` is "-"."""
    declared = fps or draw.choice(FPS)
    rate = 25.0 if declared == "-" else float(declared)
    rows = [] if declared == "-" else ["{1}{1}" + declared]
    for start, end, lines in made:
        text = "|".join(lines)
        if draw.chance(html):
            text = draw.choice(("{Y:i}", "{y:b}", "{Y:i,u}", "{S:20}", "{P:10,20}", "{f:Serif}")) + text
        rows.append(f"{{{round(start * rate / 1000)}}}{{{round(end * rate / 1000)}}}{text}")
    return "\n".join(rows) + "\n"


def mpl2(draw, made, html=0.3):
    """Return MPL2."""
    rows = []
    for start, end, lines in made:
        lines = [f"/{text}" if draw.chance(html) else text for text in lines]
        rows.append(f"[{start // 100}][{end // 100}]{draw.choice(('', ' '))}{'|'.join(lines)}")
    return "\n".join(rows) + "\n"


def tmp(draw, made, html=0.2):
    """Return TMP."""
    rows = []
    for start, _, lines in made:
        text = "|".join(tagged(draw, lines) if draw.chance(html) else lines)
        rows.append(f"{stamp(start)[:8]}:{text}")
    return "\n".join(rows) + "\n"


def _centi(ms):
    return f"{ms // 3_600_000}:{ms // 60_000 % 60:02}:{ms // 1000 % 60:02}.{ms // 10 % 100:02}"


def ass(draw, made, kind="ass"):
    """Return SubStation Alpha, version 4+ or 4, with two styles, comments and drawings."""
    plus = "+" if kind == "ass" else ""
    rows = [
        "[Script Info]",
        "; a comment",
        f"Title: {draw.word()}",
        f"ScriptType: v4.00{plus}",
        "",
        f"[V4{plus} Styles]",
    ]
    if plus:
        rows.append(
            "Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding"
        )
        rows.append(
            "Style: Default,Arial,20,&H00FFFFFF,&H000000FF,&H00000000,&H00000000,0,0,0,0,100,100,0,0,1,2,2,2,10,10,10,1"
        )
        rows.append(
            f"Style: Second,Arial,20,&H00FFFFFF,&H000000FF,&H00000000,&H00000000,0,{draw.choice((-1, 0))},{draw.choice((-1, 0))},0,100,100,0,0,1,2,2,8,10,10,10,1"
        )
    else:
        rows.append(
            "Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, TertiaryColour, BackColour, Bold, Italic, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, AlphaLevel, Encoding"
        )
        rows.append("Style: Default,Arial,20,16777215,255,0,0,0,0,1,2,2,2,10,10,10,0,1")
        rows.append(f"Style: Second,Arial,20,16777215,255,0,0,0,{draw.choice((-1, 0))},1,2,2,2,10,10,10,0,1")
    rows += [
        "",
        "[Events]",
        f"Format: {'Layer' if plus else 'Marked'}, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text",
    ]
    for start, end, lines in made:
        text = draw.choice((r"\N", r"\N", r"\n", r"\h")).join(lines)
        way = draw.integer(0, 9)
        if way == 0:
            text = "{\\p1}m 0 0 l 100 0 100 100{\\p0}"
        elif way == 1:
            text = "{\\i1}" + text + "{\\i0}"
        elif way == 2:
            text = "{\\an8\\u1}" + text
        elif way == 3:
            first, _, rest = text.partition(" ")
            text = f"{first} {{\\s1}}{rest}{{\\r}} end"
        first = "0" if plus else "Marked=0"
        rows.append(
            f"{'Comment' if draw.chance(0.1) else 'Dialogue'}: {first},{_centi(start)},{_centi(end)},{draw.choice(('Default', 'Default', 'Second'))},{draw.choice(('', draw.word()))},0,0,0,,{text}"
        )
    return "\n".join(rows) + "\n"


def written(draw, kind, made, fps=""):
    """Return subtitles in a format."""
    if kind in ("ass", "ssa"):
        return ass(draw, made, kind)
    if kind == "microdvd":
        return microdvd(draw, made, fps)
    return {"srt": srt, "vtt": vtt, "mpl2": mpl2, "tmp": tmp}[kind](draw, made)


def document(draw, kinds=("srt", "srt", "vtt", "microdvd", "mpl2", "tmp"), made=None, fps=""):
    """Return the format, the name and the text of a file."""
    kind = draw.choice(kinds)
    text = written(draw, kind, made or cues(draw), fps)
    name = draw.file(EXTENSION[kind])
    if draw.chance(0.08):
        text = text.replace("\n", "\r\n")
    return kind, name, text


def run(draw, options, name, text, kind, to=""):
    """Return a case that processes one file: in place, or from standard input to standard output."""
    options = f" {options}" if options else ""
    piped = to == "mpl2" or kind == "mpl2" and not to and draw.chance(0.5) or draw.chance(0.4)
    if piped:
        return Case(
            f"{draw.tool}{options} < {quote(name)}"
            if draw.chance(0.7)
            else f"cat {quote(name)} | {draw.tool}{options}",
            {name: text},
        )
    return Case(f"{draw.tool}{options} {quote(name)}", {name: text})


def strange(draw):
    """Return the name, the text and the format of a file at the edge of its format."""
    word = draw.word()
    far = draw.choice(("99:59:59,999", "00:00:00,000", "9:5:7.5", "10:00:00,25"))
    found = draw.choice(
        (
            ("srt", f"1\n{far} --> 99:59:59,999\n{word}\n\n"),
            ("srt", f"1\n00:00:01,000 --> 00:00:02,000\n\n2\n00:00:03,000 --> 00:00:04,000\n{word}\n"),
            (
                "srt",
                f"00:00:05,000 --> 00:00:04,000\n{word}\n\n\n\nmore\n12\n00:00:01,000 --> 00:00:02,000\nearlier\n",
            ),
            ("srt", f"\ufeff1\n00:00:01,000 --> 00:00:02,000\n{word}\n"),
            (
                "srt",
                f"1\n00:00:01,000 --> 00:00:02,000\n{draw.choice(('1 < 2 > 1', '<>', '{}', '{unclosed', '<b', '日本語 🙂', 'a & b'))}\n",
            ),
            ("srt", f"x 00:00:01,000 ---> 00:00:02,000 X1:40\n  {word}  \n"),
            (
                "vtt",
                f"WEBVTT\n\nSTYLE\n::cue {{}}\n\n00:10.000 --> 00:05.000\n{word}\n\n00:01.000 --> 00:02.000\nearlier\n",
            ),
            ("vtt", "WEBVTT\n"),
            ("vtt", f"WEBVTT\n\n0100:00:01.000 --> 0100:00:02.00\n{word}\n"),
            ("microdvd", "{1}{1}" + draw.choice(FPS) + "\n{0}{0}" + word + "\n { 10 } { 20 }" + word + "|\n"),
            ("microdvd", "{1}{1}25\n{10}{20}{Y:i}" + word + "{Y:i}|{Y:u}x\nnoise\n"),
            ("mpl2", f"[0][10]/{word}|plain\n[-5][5]early\n[20][15] | \nnoise\n"),
            ("tmp", f"0:00:01:{word}\n00:00:01:<u>{word}\n00:00:00:late|\nnoise\n"),
            ("tmp", f"99:59:59:{word}|{word}\n"),
        )
    )
    return (
        found[0],
        draw.choice((draw.file(EXTENSION[found[0]]), f"größe {draw.word()}.{EXTENSION[found[0]]}")),
        found[1],
    )


def failing(draw, options=""):
    """Return a case with a missing or unreadable file, or wrong usage."""
    options = f" {options}" if options else ""
    kind, name, text = document(draw)
    files = {name: text}
    missing = f"missing-{draw.word()}.srt"
    line = draw.choice(
        (
            f"{options} {missing}",
            f"{options} {missing} {name}" if kind != "mpl2" else f"{options} {missing}",
            f"{options} {name} {missing}" if kind != "mpl2" else f"{options} {missing}",
            f"{options} .",
            f"{options} notes.txt",
            f"{options} --{draw.word()} {name}",
            f"{options} -t {draw.choice(('SRT', 'sub', 'txt', 'webvtt', draw.word()))} {name}",
            f"{options} -f {draw.choice(('SRT', 'sub', 'auto', draw.word()))} {name}",
            f"{options} --fps {draw.choice(('0', '-25', 'x', '', '25,0'))} {name}".replace(
                "--fps  ", "--fps '' "
            ),
            f"{options} --input-enc {draw.word()}-8 {name}",
            f"{options} < empty.srt",
            f"{options} --to mpl2 {name}",
            f"{options} plain.sub",
        )
    )
    if "notes.txt" in line:
        files["notes.txt"] = draw.text()
    if "empty.srt" in line:
        files["empty.srt"] = draw.choice(("", "\n", "1\n", draw.sentence()))
    if "plain.sub" in line:
        files["plain.sub"] = microdvd(draw, cues(draw), "-", 0)
        files.pop(name)
    return Case(f"{draw.tool}{line}", files)
