"""Networks whose prefixes are kept."""

from _configs import config, failing, four, run, salted
from fuzz import Case

FLAG = "--preserve-prefixes"


def common(draw):
    """Return a case with networks that occur, instead of the usual ones."""
    nets = draw.sample(
        (
            "10.0.0.0/8",
            "8.0.0.0/8",
            "8.8.0.0/16",
            "192.168.0.0/16",
            "172.16.0.0/12",
            "100.64.0.0/10",
            "203.0.113.0/24",
            "1.0.0.0/8",
            "0.0.0.0/1",
            "10.0.0.0/24",
        ),
        draw.integer(1, 3),
    )
    return run(
        draw,
        f"-a {salted(draw)} {FLAG} {','.join(nets)}"
        + draw.choice(("", "", " --preserve-host-bits 8", " --preserve-private-addresses")),
        config(draw, v6=0.2),
    )


def boundary(draw):
    """Return a case with a whole address, everything, or the same network twice."""
    nets = draw.choice(
        (
            "0.0.0.0/0",
            "10.1.2.3/32",
            "10.1.2.3",
            "10.0.0.0/8,10.0.0.0/8",
            "10.0.0.0/8,10.1.0.0/16",
            "128.0.0.0/1",
            "224.0.0.0/4",
            "10.0.0.0/255.0.0.0",
            "10.0.0.0/0.255.255.255",
        )
    )
    rows = [
        "10.1.2.3",
        "10.1.2.2",
        "10.1.2.4",
        "11.1.2.3",
        "9.9.9.9",
        "192.168.1.1",
        "225.1.1.1",
        four(draw),
        four(draw),
    ]
    draw.random.shuffle(rows)
    return run(draw, f"-a {salted(draw)} {FLAG}={nets}", "\n".join(rows) + "\n")


def error(draw):
    """Return a case with networks that are none, or wrong usage."""
    if draw.chance(0.5):
        bad = draw.choice(
            (
                "10.0.0.1/8",
                "10.0.0.0/33",
                "300.0.0.0/8",
                "ten",
                "10.0.0.0/8,",
                "10.0.0/8",
                "''",
                "10.0.0.0-10.0.0.9",
                "192.168.1.0/16,10.0.0.0/8",
            )
        )
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg -a {salted(draw)} {FLAG} {bad}", {"r.cfg": config(draw)}
        )
    return failing(draw, f"-a {salted(draw)} {FLAG} 10.0.0.0/8")
