"""Numbers of autonomous systems that are replaced."""

from _configs import config, failing, numbers, run, salted
from fuzz import Case

FLAG = ("-n", "--as-numbers")


def common(draw):
    """Return a case with numbers that occur."""
    systems = numbers(draw)
    options = f"{draw.choice(FLAG)} {','.join(systems)} {salted(draw)}" + draw.choice(
        ("", "", "", " -a", " -w acme")
    )
    return run(draw, options, config(draw, (), systems))


def boundary(draw):
    """Return a case with numbers inside of others, and at the ends of the ranges."""
    systems = draw.sample(
        (
            "0",
            "1",
            "64511",
            "64512",
            "65535",
            "65536",
            "4199999999",
            "4200000000",
            "4294967295",
            "10",
            "100",
            "007",
        ),
        draw.integer(1, 4),
    )
    rows = [
        draw.choice(
            (
                f"as {one}",
                f"{one}",
                f"x{one}y",
                f"{one}{one}",
                f"{one}:{one}",
                f"1{one}",
                f"{one}.{one}",
                f"-{one}-",
                f"{one} {one}",
            )
        )
        for one in systems
        for _ in range(2)
    ]
    return run(
        draw,
        f"{draw.choice(FLAG)}={','.join(systems)} {salted(draw)}".replace("-n=", "-n "),
        "\n".join(rows) + "\n",
    )


def error(draw):
    """Return a case with numbers that are none, or out of range."""
    if draw.chance(0.5):
        bad = draw.choice(
            (
                "4294967296",
                "AS1",
                "1,2,",
                "-5",
                "1.5",
                "1;2",
                "65001 65002",
                "99999999999",
                draw.word(),
                "''x",
            )
        )
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg {salted(draw)} {draw.choice(FLAG)} {bad}".replace(";", r"\;"),
            {"r.cfg": config(draw)},
        )
    return failing(draw, f"{draw.choice(FLAG)} 65001 {salted(draw)}")
