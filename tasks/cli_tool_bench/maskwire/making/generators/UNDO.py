"""Addresses that are given back."""

from _configs import config, failing, folder, run, salted
from fuzz import Case

FLAG = ("-u", "--undo")
KEPT = (
    "",
    "",
    " --preserve-host-bits 8",
    " --preserve-prefixes 8.0.0.0/8",
    " --preserve-private-addresses",
    " --preserve-addresses 10.0.0.0/16",
)


def common(draw):
    """Return a case that undoes what was masked, or takes a text as masked."""
    salt, kept = salted(draw), draw.choice(KEPT)
    if draw.chance(0.5):
        mask = f"{draw.tool} -i plain.cfg -o masked.cfg -a {salt}{kept}"
        back = f"{draw.tool} -i masked.cfg -o back.cfg {draw.choice(FLAG)} {salt}{kept}"
        shown = draw.choice(
            (
                "",
                " && tail -n 2 back.cfg",
                " && if cmp -s plain.cfg back.cfg; then echo same; else echo other; fi",
            )
        )
        return Case(f"{mask} && {back}{shown}", {"plain.cfg": config(draw, v6=0.5)})
    options = f"{draw.choice(FLAG)} {salt}{kept}"
    if draw.chance(0.15):
        return run(draw, options, "", more=folder(draw, lambda: config(draw)))
    return run(draw, options, config(draw, v6=0.5))


def boundary(draw):
    """Return a case with masks, odd addresses, another salt, or words that cannot be given back."""
    rows = draw.sample(
        (
            "0.0.0.0",
            "255.255.255.255",
            "0.0.0.1",
            "127.0.0.1",
            "1.2.3.4.5",
            "010.1.1.1",
            "::",
            "::1",
            "ff02::2",
            "224.1.2.3",
            "10.0.0.1 10.0.0.1",
            "240.0.0.1",
        ),
        draw.integer(2, 8),
    )
    return run(
        draw,
        f"{draw.choice(FLAG)} {salted(draw)}"
        + draw.choice(("", " -w acme", " -n 1", " --preserve-host-bits 0")),
        "\n".join(rows) + "\n",
    )


def error(draw):
    """Return a case without a salt, or with both directions."""
    if draw.chance(0.5):
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg {draw.choice(FLAG)}{draw.choice(('', ' -a', ' -a -s x', ' -n 65001', ' -w acme', ' -d map.txt', ' -s x -d map.txt', ' -s'))}",
            {"r.cfg": config(draw)},
        )
    return failing(draw, f"{draw.choice(FLAG)} {salted(draw)}")
