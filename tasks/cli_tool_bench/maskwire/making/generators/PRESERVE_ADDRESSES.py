"""Addresses and networks that are kept as a whole."""

from _configs import config, failing, four, run, salted
from fuzz import Case

FLAG = "--preserve-addresses"


def common(draw):
    """Return a case with networks and addresses that occur."""
    one = four(draw)
    nets = draw.sample(
        (
            "10.0.0.0/8",
            "8.0.0.0/8",
            "8.8.0.0/16",
            "192.168.0.0/16",
            "172.16.0.0/12",
            "100.64.0.0/10",
            "203.0.113.0/24",
            one,
            one,
            "1.0.0.0/8",
        ),
        draw.integer(1, 3),
    )
    extra = draw.choice(
        ("", "", " --preserve-host-bits 4", " --preserve-private-addresses", " --preserve-prefixes 8.0.0.0/8")
    )
    return run(
        draw,
        f"-a {salted(draw)} {FLAG} {','.join(nets)}{extra}",
        config(draw, v6=0.2) + f"peer {one} and {four(draw)}\n",
    )


def boundary(draw):
    """Return a case with everything, single addresses and their neighbours."""
    nets = draw.choice(
        (
            "0.0.0.0/0",
            "10.1.2.3/32",
            "10.1.2.3",
            "10.1.2.2/31",
            "10.1.2.3,10.1.2.4",
            "128.0.0.0/1",
            "10.0.0.0/255.0.0.0",
            "11.1.2.3",
        )
    )
    rows = [
        "10.1.2.3",
        "10.1.2.2",
        "10.1.2.4",
        "010.1.2.3",
        "11.1.2.3",
        "9.9.9.9",
        "192.168.1.1",
        four(draw),
        "2001:db8::1",
    ]
    draw.random.shuffle(rows)
    return run(draw, f"-a {salted(draw)} {FLAG}={nets}", "\n".join(rows) + "\n")


def error(draw):
    """Return a case with addresses that are none, or wrong usage."""
    if draw.chance(0.5):
        bad = draw.choice(
            (
                "10.0.0.1/8",
                "10.0.0.0/33",
                "300.0.0.1",
                "ten",
                "10.0.0.1,",
                "10.0.0",
                "''",
                "10.0.0.1-9",
                "1.2.3.4/255.0.255.0",
            )
        )
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg -a {salted(draw)} {FLAG} {bad}", {"r.cfg": config(draw)}
        )
    return failing(draw, f"-a {salted(draw)} {FLAG} 10.0.0.0/8")
