"""The table of replaced addresses."""

from _configs import config, failing, four, run, salted, six
from fuzz import Case

FLAG = ("-d", "--dump-ip-map")


def common(draw):
    """Return a case that writes a table, and at times shows it."""
    options = f"-a {salted(draw)} {draw.choice(FLAG)} map.txt" + draw.choice(
        (
            "",
            "",
            " --preserve-host-bits 8",
            " --preserve-private-addresses",
            " --preserve-prefixes 10.0.0.0/8",
            " -n 65001",
        )
    )
    case = run(draw, options, config(draw, v6=0.5) + config(draw, v6=0.3))
    return Case(case.command + draw.choice(("", " && cat map.txt", " && wc -l < map.txt")), case.files)


def boundary(draw):
    """Return a case with no addresses, the same address in several forms, or a table over an old one."""
    one = four(draw)
    text = draw.choice(
        (
            "",
            "no addresses\n",
            f"{one} {one}\n{one}\n",
            "1.2.3.4 01.02.03.04\n2001:DB8::1 2001:db8:0::1\n",
            "255.255.0.0\n",
            f"{six(draw)}\n{one}\n{six(draw)}\n",
        )
    )
    case = run(draw, f"-a {salted(draw)} {draw.choice(FLAG)} {draw.choice(('map.txt', 'old.txt'))}", text)
    return Case(case.command, {**case.files, "old.txt": "old\nold\n"})


def error(draw):
    """Return a case without addresses to replace, or whose table cannot be written."""
    if draw.chance(0.55):
        options = draw.choice(
            ("-w acme -s x", "-n 65001 -s x", "-u -s x", "", "-p -s x", f"-a {salted(draw)} -d no/such")
        )
        return Case(
            f"{draw.tool} -i r.cfg -o out.cfg {options} {draw.choice(FLAG) if '-d' not in options else ''} {'map.txt' if '-d' not in options else ''}".strip(),
            {"r.cfg": config(draw)},
        )
    return failing(draw, f"-a {salted(draw)} {draw.choice(FLAG)} map.txt")
