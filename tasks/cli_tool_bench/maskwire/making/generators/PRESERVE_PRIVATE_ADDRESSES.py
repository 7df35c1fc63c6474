"""Private addresses that are kept as a whole."""

from _configs import config, failing, folder, four, run, salted
from fuzz import Case

FLAG = "--preserve-private-addresses"


def common(draw):
    """Return a case with private and public addresses."""
    options = f"-a {salted(draw)} {FLAG}" + draw.choice(
        (
            "",
            "",
            "",
            " --preserve-host-bits 6",
            " --preserve-addresses 8.8.0.0/16",
            " --preserve-prefixes 1.0.0.0/8",
        )
    )
    if draw.chance(0.15):
        return run(draw, options, "", more=folder(draw, lambda: config(draw)))
    return run(
        draw,
        options,
        config(draw, v6=0.2)
        + f"peer 10.{draw.integer(0, 255)}.1.2 {four(draw)} 192.168.{draw.integer(0, 255)}.9\n",
    )


def boundary(draw):
    """Return a case with addresses just inside and outside of the private networks."""
    odd = (
        "10.0.0.0",
        "10.255.255.255",
        "9.255.255.255",
        "11.0.0.0",
        "172.15.255.255",
        "172.16.0.0",
        "172.31.255.255",
        "172.32.0.0",
        "192.167.255.255",
        "192.168.0.0",
        "192.168.255.255",
        "192.169.0.0",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.1.1",
        "fd00::1",
        "010.0.0.9",
    )
    return run(draw, f"-a {FLAG} {salted(draw)}", "\n".join(draw.sample(odd, draw.integer(3, 12))) + "\n")


def error(draw):
    """Return a case with a missing input, a bad combination of options, or wrong usage."""
    if draw.chance(0.2):
        return Case(f"{draw.tool} -i r.cfg -o out.cfg -a -s x {FLAG}={draw.word()}", {"r.cfg": config(draw)})
    return failing(draw, f"-a {salted(draw)} {FLAG}")
