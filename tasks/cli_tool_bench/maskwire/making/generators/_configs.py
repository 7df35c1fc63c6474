"""What the generators of this tool share: configurations of routers."""

from fuzz import Case, quote

NAMES = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "fjord",
    "grove",
    "heron",
    "knoll",
    "maple",
    "quartz",
    "saffron",
    "velvet",
    "zephyr",
    "acme",
    "globex",
    "initech",
    "hooli",
)
"""Words of which none is a part of a word that the tool leaves alone."""
MASKS = (
    "255.255.255.0",
    "255.255.255.252",
    "255.255.0.0",
    "0.0.0.255",
    "0.0.3.255",
    "255.255.255.255",
    "0.0.0.0",
    "128.0.0.0",
)
SALTS = ("salt", "s3cret", "x", "a b", "ünï", "0", "long-salt-0123456789", "TESTSALT")


def four(draw):
    """Return an IPv4 address."""
    first = draw.choice(
        (
            "10",
            "10",
            "192.168",
            "172.16",
            "172.31",
            "8",
            "8.8",
            "1",
            "100.64",
            "203.0.113",
            str(draw.integer(1, 223)),
            str(draw.integer(1, 254)),
        )
    )
    parts = first.split(".")
    return ".".join(
        [*parts, *(str(draw.integer(0, 255)) for _ in range(3 - len(parts))), str(draw.integer(1, 254))]
    )


def six(draw):
    """Return an IPv6 address."""
    return draw.choice(
        (
            f"2001:db8::{draw.integer(1, 9999)}",
            f"fe80::{draw.integer(1, 99)}",
            f"2001:DB8:{draw.integer(0, 9999)}::1",
            f"2a02:100:{draw.integer(1, 99)}:1:2:3:4:{draw.integer(1, 99)}",
            f"fd00:{draw.integer(1, 99)}::a:b",
            "::1",
            f"::ffff:10.0.0.{draw.integer(1, 254)}",
        )
    )


def numbers(draw, count=0):
    """Return numbers of autonomous systems."""
    pool = (
        65001,
        65000,
        64512,
        65535,
        1,
        12,
        701,
        3356,
        64511,
        65536,
        4200000001,
        4294967295,
        123456,
        draw.integer(1, 64511),
        draw.integer(64512, 65535),
    )
    return [str(number) for number in draw.sample(pool, count or draw.integer(1, 3))]


def config(draw, names=(), systems=(), v6=0.3):
    """Return a configuration that holds names, numbers of systems and addresses."""
    names = list(names) or draw.sample(NAMES, 2)
    systems = list(systems) or ["65001"]
    name = names[0]
    pool = [four(draw) for _ in range(draw.integer(1, 4))]
    rows = [
        f"hostname {draw.choice((name, name.upper(), name.title()))}-{draw.choice(('core', 'edge'))}{draw.integer(1, 9)}"
    ]
    kinds = [
        "interface",
        "interface",
        "bgp",
        "route",
        "description",
        "list",
        "server",
        "odd",
        "prefix",
        "banner",
    ]
    for kind in draw.sample(kinds, draw.integer(3, 7)):
        one, two = draw.choice(pool), draw.choice(pool)
        other = draw.choice(names)
        if kind == "interface":
            rows += [f"interface Ethernet{draw.integer(0, 9)}", f" ip address {one} {draw.choice(MASKS)}"]
            if draw.chance(v6):
                rows.append(f" ipv6 address {six(draw)}/64")
        elif kind == "bgp":
            rows += [
                f"router bgp {draw.choice(systems)}",
                f" neighbor {one} remote-as {draw.choice((*systems, '65010'))}",
                f" network {two}/24",
            ]
            if draw.chance(v6):
                rows.append(f" neighbor {six(draw)} activate")
            if draw.chance(0.5):
                rows.append(f" bgp community {draw.choice(systems)}:{draw.integer(1, 200)}")
        elif kind == "route":
            rows.append(f"ip route {one} {draw.choice(MASKS)} {two}")
        elif kind == "description":
            rows.append(
                f" description link to {other}{draw.choice(('', '-west', '.example', '_lab', ' office'))} via {two}"
            )
        elif kind == "list":
            rows.append(f"access-list 10 permit {one} {draw.choice(MASKS)}")
        elif kind == "server":
            rows.append(f"ntp server {one};  logging host [{two}]")
        elif kind == "odd":
            rows.append(
                draw.choice(
                    (
                        f"version 1.2.3.4.5 {one}.",
                        f"set x={one},y={two}",
                        f'"{one}"/{two}',
                        f"v{one} x{two}",
                        f"{one}_a {two}-b",
                        f"addr 010.001.002.00{draw.integer(1, 9)}",
                        f"\tkey\t{one}  ",
                        "time 10:20:30 a::b",
                    )
                )
            )
        elif kind == "prefix":
            rows.append(f"ip prefix-list {other.upper()} seq 5 permit {one}/{draw.integer(8, 32)} le 32")
        else:
            rows.append(f"banner motd # property of {other.upper()} {other} #")
    return "\n".join(rows) + draw.choice(("\n", "\n", "\n!\nend\n", ""))


def salted(draw):
    """Return the option for a salt."""
    return f"{draw.choice(('-s', '--salt'))} {quote(draw.choice(SALTS))}"


def run(draw, options, text, name="", more=None):
    """Return a case that reads a file, or a folder, and at times shows the result."""
    files = dict(more or {})
    if more is not None:
        source, target = "configs", draw.choice(("out", "out", "a/b"))
        shown = ""
    else:
        name = name or draw.choice(
            ("router.cfg", "edge.conf", f"{draw.word()}.cfg", "lab/r1.cfg", f"größe {draw.word()}.cfg")
        )
        files[name] = text
        source, target = name, draw.choice(("out.cfg", "out.cfg", "masked/out.cfg", "anon.txt"))
        shown = draw.choice(
            ("", "", f" && cat {target}", f" && diff {quote(source)} {target} | grep -c '^>'")
        )
        if "diff" in shown:
            shown = f" && head -n 3 {target}"
    pair = f"{draw.choice(('-i', '--input'))} {quote(source)} {draw.choice(('-o', '--output'))} {target}"
    return Case(
        f"{draw.tool} {pair} {options}{shown}"
        if draw.chance(0.7)
        else f"{draw.tool} {options} {pair}{shown}",
        files,
    )


def folder(draw, make):
    """Return files of a folder, some of them hidden."""
    files = {
        f"configs/{name}": make()
        for name in draw.sample(
            ("r1.cfg", "r2.cfg", "site/r3.cfg", "site/deep/r4.conf", "README"), draw.integer(1, 3)
        )
    }
    if draw.chance(0.3):
        files["configs/.hidden"] = make()
    return files


def failing(draw, options):
    """Return a case with a missing input, a bad combination of options, or wrong usage."""
    text = config(draw)
    line = draw.choice(
        (
            f"-i missing-{draw.word()}.cfg -o out.cfg {options}",
            f"-i r.cfg {options}",
            f"-o out.cfg {options}",
            f"-i r.cfg -o out.cfg {options} --{draw.word()}",
            f"-i r.cfg -o out.cfg {options} -u -a -s x",
            "-i r.cfg -o out.cfg -u",
            f"-i r.cfg -o out.cfg -d map.txt -n {draw.integer(1, 70000)} -s x",
            f"-i configs -o r.cfg {options}",
            f"-i r.cfg -o out.cfg {options} -n {draw.choice(('4294967296', 'AS65001', '65001,', '99999999999', 'x'))}",
            f"-i r.cfg -o out.cfg {options} --preserve-host-bits {draw.choice(('x', '1.5', 'eight'))}",
            f"-i r.cfg -o out.cfg {options} -a --preserve-addresses {draw.choice(('10.0.0.1/8', '300.1.1.1', 'all', '10.0.0.0/33'))}",
            f"-i r.cfg -o out.cfg {options} extra",
            f"-i r.cfg -o out.cfg {options} -l loud",
        )
    )
    return Case(f"{draw.tool} {line}", {"r.cfg": text, "configs/a.cfg": config(draw)})
