"""Addresses that are replaced."""

from _configs import config, failing, folder, four, run, salted, six

FLAG = ("-a", "--anonymize-ips")


def common(draw):
    """Return a case with addresses of both versions."""
    options = f"{draw.choice(FLAG)} {salted(draw)}"
    if draw.chance(0.2):
        return run(draw, options, "", more=folder(draw, lambda: config(draw)))
    return run(draw, options, config(draw, v6=0.5))


def boundary(draw):
    """Return a case with texts that look like addresses."""
    odd = (
        "0.0.0.1",
        "0.0.0.0",
        "255.255.255.254",
        "127.0.0.1",
        "224.0.0.5",
        "240.1.1.1",
        "255.0.255.0",
        "256.1.1.1",
        "1.2.3",
        "1.2.3.4.5",
        "a1.2.3.4",
        "1.2.3.4b",
        "_1.2.3.4_",
        "(1.2.3.4)",
        "1.2.3.4:80",
        "01.02.003.0004",
        "1.2.3.4/33",
        "::",
        "::1",
        "1::",
        "fe80::1%eth0",
        "2001:db8::g",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8:9",
        "ABCD::EF",
        "::ffff:1.2.3.4",
        "10:20:30",
        "x::1",
        "é10.1.1.1",
        four(draw),
        six(draw),
    )
    rows = [
        draw.choice((" ", "", "\t", ",")).join(draw.sample(odd, draw.integer(1, 4)))
        for _ in range(draw.integer(2, 6))
    ]
    return run(draw, f"{draw.choice(FLAG)} {salted(draw)}", "\n".join(rows) + "\n")


def error(draw):
    """Return a case with a missing input, a bad combination of options, or wrong usage."""
    return failing(draw, f"{draw.choice(FLAG)} {salted(draw)}")
