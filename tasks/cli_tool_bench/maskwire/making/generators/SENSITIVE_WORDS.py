"""Words that are replaced."""

from _configs import NAMES, config, failing, folder, run, salted

FLAG = ("-w", "--sensitive-words")


def common(draw):
    """Return a case with words that occur in several cases, at times with words to keep."""
    names = draw.sample(NAMES, draw.integer(1, 3))
    given = [draw.choice((name, name, name.upper(), name.title())) for name in names]
    options = f"{draw.choice(FLAG)} {','.join(given)} {salted(draw)}" + draw.choice(
        ("", "", "", " -a", f" -r {names[0]}-core1", f" --reserved-words {names[-1]},{names[0]}_lab")
    )
    if draw.chance(0.2):
        return run(draw, options, "", more=folder(draw, lambda: config(draw, names)))
    return run(draw, options, config(draw, names))


def boundary(draw):
    """Return a case with words inside of others, in a row, beside blanks and in other scripts."""
    name = draw.choice((*NAMES, "größe", "日本", "é"))
    rows = [
        draw.choice(
            (
                f"x{name}y",
                f"{name}{name}",
                f"  {name}\t{name.upper()}  ",
                f"{name}.{name}",
                f"\u00a0{name}\u00a0",
                f"{name[:-1]}",
                f"{name.title()}s",
                "",
                f"'{name}'",
            )
        )
        for _ in range(draw.integer(2, 7))
    ]
    return run(
        draw,
        f"{draw.choice(FLAG)} {name} {salted(draw)}"
        + draw.choice(("", f" -r x{name}y", f" -r {name}{name}")),
        "\n".join(rows) + draw.choice(("", "\n", "\n\n")),
    )


def error(draw):
    """Return a case with a missing input, a bad combination of options, or wrong usage."""
    return failing(draw, f"{draw.choice(FLAG)} {draw.choice(NAMES)} {salted(draw)}")
