"""References, translations that resemble them, and calls that score them."""

from __future__ import annotations

from fuzz import Case, Draw, quote

NOUNS = (
    "cat",
    "Mr. Smith",
    "committee",
    "U.S. dollar",
    "river",
    "price",
    "twenty-one",
    "train",
    "€100",
    "e-mail",
    "Müller",
)
VERBS = (
    "sat on",
    "doesn't see",
    "bought",
    "is near",
    "rose by 3.5%",
    "said: “no” to",
    "paid $1,200.50 for",
    "left",
)
ENDS = (
    ".",
    ".",
    "!",
    "?",
    " ...",
    ";",
    ".",
    "",
    " (again).",
    ", 2019.",
    "'s.",
    " - yes.",
    " &amp; co.",
    " &quot;now&quot;.",
)
CHINESE = "我喜欢猫和狗今天天气很好他们去了北京大学"
LATIN = (
    "naïve café",
    "Ünïcödé",
    "日本語",
    "x≠y",
    "5°C",
    "A/B",
    "a_b",
    "#1",
    "~3",
    "«oui»",
    "l’eau",
    "1,000.5",
    "3-4",
    "№5",
    "½",
)
SHOWN = " | sed 's/+v[^ ]*//'"


def segment(draw: Draw) -> str:
    """Return a sentence."""
    parts = [
        draw.choice(("The", "A", "Every", "My old")),
        draw.choice(NOUNS),
        draw.choice(VERBS),
        "the",
        draw.choice(NOUNS),
    ]
    if draw.chance(0.5):
        parts += [draw.choice(("in", "and", "with")), draw.choice(("a", "the")), draw.word(), draw.word()]
    return " ".join(parts) + draw.choice(ENDS)


def latin(draw: Draw) -> str:
    """Return a sentence with symbols and letters from many languages."""
    return " ".join([*draw.sample(LATIN, draw.integer(2, 4)), draw.word(), draw.word()]) + draw.choice(ENDS)


def chinese(draw: Draw) -> str:
    """Return a text in Chinese with punctuation."""
    text = draw.letters(draw.integer(6, 14), CHINESE)
    return (
        text[:4] + draw.choice(("", "，", " iPhone ", "3.5")) + text[4:] + draw.choice(("。", "！", "", "."))
    )


def worse(draw: Draw, text: str) -> str:
    """Return a text that is a little different."""
    words = text.split(" ")
    if len(words) < 3:
        cut = draw.integer(0, max(len(text) - 1, 0))
        return text[cut:] + text[: cut // 2]
    for _ in range(draw.choice((0, 1, 1, 2, 2, 3))):
        place, other = draw.integer(0, len(words) - 1), draw.integer(0, len(words) - 1)
        change = draw.choice(("replace", "drop", "insert", "move", "move", "case", "double"))
        if change == "replace":
            words[place] = draw.choice((draw.word(), "the", "a"))
        elif change == "drop" and len(words) > 2:
            del words[place]
        elif change == "insert":
            words.insert(place, draw.choice((draw.word(), "very", "the")))
        elif change == "move":
            words.insert(other, words.pop(place))
        elif change == "case":
            words[place] = words[place].swapcase()
        elif change == "double":
            words.insert(place, words[place])
    return " ".join(words)


def corpus(draw: Draw, kind: object = None, low: int = 1, high: int = 5) -> tuple[list[str], list[str]]:
    """Return references and translations, as many."""
    make = kind or draw.choice((segment, segment, segment, latin))
    references = [make(draw) for _ in range(draw.integer(low, high))]  # type: ignore[operator]
    return references, [worse(draw, text) for text in references]


def lines(texts: list[str]) -> str:
    """Return texts as lines."""
    return "".join(f"{text}\n" for text in texts)


def call(draw: Draw, options: str, found: tuple[list[str], list[str]], *, more: int = 0) -> Case:
    """Return a score of translations against one reference file or, with `more`, several."""
    references, translations = found
    names = draw.sample(("ref.txt", "refs/a.txt", "gold.en", "human", "ref two.txt", "zweite.de"), 1 + more)
    files = {
        name: lines(references if place == 0 else [worse(draw, text) for text in references])
        for place, name in enumerate(names)
    }
    output = draw.choice(("mt.txt", "system.out", "out/hyp.txt"))
    files[output] = lines(translations)
    words = " ".join(quote(name) for name in names)
    shown, cut = draw.choice(((" -b", ""), ("", SHOWN), ("", SHOWN), (" --short", SHOWN)))
    command = draw.choice(
        (
            f"{draw.tool} {words} -i {output} {options}{shown}{cut}",
            f"{draw.tool} {words} {options}{shown} --input {output}{cut}",
            f"{draw.tool} {words} {options}{shown} < {output}{cut}",
            f"cat {output} | {draw.tool} {words} {options}{shown}{cut}",
        )
    )
    return Case(command.replace("  ", " "), files)


def odd(draw: Draw, options: str) -> Case:
    """Return a score of odd segments."""
    pairs = draw.sample(
        (
            ("a", "a"),
            ("a b", "b a"),
            ("the the the the", "the cat"),
            ("one", "one two three four five six seven"),
            ("one two three four five six seven", "one"),
            ("x " * 40, "x " * 38),
            ("🙂 👍", "🙂 👎"),
            ("e\u0301t\u00e9", "\u00e9te\u0301"),
            ("tab\there now", "tab here now"),
            ("  spaces   around  ", "spaces around"),
            ("&lt;b&gt; &quot;q&quot; <skipped>", '<b> "q"'),
            ("1.5 1,5 1-5 a-b a.b", "1.5 1,5 1-5 a-b a. b"),
            ("UPPER lower", "upper LOWER"),
            ("...", "!!!"),
            ("\u00a0nbsp\u00a0x", "nbsp x"),
            (draw.word() + " .", draw.word() + "."),
            (draw.word(), ""),
            ("{}", "%s"),
        ),
        draw.integer(1, 4),
    )
    output = lines([one for one, _ in pairs])
    reference = lines([two for _, two in pairs])
    if draw.chance(0.1):
        output = output.rstrip("\n")
    shown, cut = draw.choice(((" -b", ""), (" -b", ""), ("", SHOWN)))
    return Case(
        f"{draw.tool} ref.txt -i mt.txt {options}{shown}{cut}", {"ref.txt": reference, "mt.txt": output}
    )


def wrong(draw: Draw, option: str) -> Case:
    """Return a call that must fail, besides a sound option."""
    references, translations = corpus(draw, low=2)
    files = {
        "ref.txt": lines(references),
        "mt.txt": lines(translations),
        "short.txt": lines(translations[:-1]),
        "none.txt": "",
    }
    calls = (
        f"ref.txt -i short.txt {option}",
        f"short.txt {option} < mt.txt",
        f"{draw.word()}.txt -i mt.txt {option}",
        f"ref.txt -i {draw.word()}.txt {option}",
        f"{option} < mt.txt",
        f"none.txt -i none.txt {option}",
        f"ref.txt -i mt.txt {option} --{draw.word()}",
        f"ref.txt -i mt.txt {option} -m {draw.choice(('meteor', 'BLEU', 'rouge', draw.word()))}",
        f"ref.txt -i mt.txt {option} -tok {draw.choice(('ja-mecab', 'moses', '14', draw.word()))}",
        f"ref.txt -i mt.txt {option} -s {draw.choice(('add', 'EXP', 'method1', draw.word()))}",
        f"ref.txt -i mt.txt {option} -w {draw.choice(('wide', '1.5', '-1', quote('')))}",
        f"ref.txt -i mt.txt {option} -nr {draw.integer(2, 4)}",
        f"ref.txt mt.txt -i mt.txt {option} -nr 2",
        f"ref.txt short.txt -i mt.txt {option}",
    )
    if "-sl" in option or "--sentence-level" in option:
        calls = (*calls[2:-1], f"ref.txt -i mt.txt {option} -m bleu chrf")
    return Case(f"{draw.tool} {draw.choice(calls)}", files)
