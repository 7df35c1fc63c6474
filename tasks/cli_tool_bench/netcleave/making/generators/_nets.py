"""What the generators of this tool share: addresses and masks."""

from ipaddress import IPv4Address

from fuzz import Case, quote

FAMOUS = (
    "10.0.0.0",
    "192.168.1.10",
    "172.16.5.4",
    "127.0.0.1",
    "169.254.7.8",
    "224.0.0.5",
    "100.64.1.2",
    "192.0.2.55",
    "8.8.8.8",
    "255.255.255.255",
    "0.0.0.0",
    "240.1.2.3",
    "198.51.100.7",
    "203.0.113.9",
    "1.1.1.1",
    "128.0.0.1",
    "191.255.0.1",
    "223.255.255.254",
)
FAMOUS6 = (
    "2001:db8::1",
    "fe80::1",
    "::1",
    "::",
    "ff02::1",
    "fc00::12",
    "fd12:3456:789a::1",
    "2606:4700::1111",
    "2001:db8:0:1::",
    "2001:DB8::ABCD",
    "2a00:1450:4001:81b::200e",
    "2001:0db8:0000:0000:0000:0000:0000:0001",
)


def four(draw):
    """Return an IPv4 address."""
    if draw.chance(0.4):
        return draw.choice(FAMOUS)
    return f"{draw.choice((10, 172, 192, 8, 100, draw.integer(1, 223)))}.{draw.integer(0, 255)}.{draw.integer(0, 255)}.{draw.integer(0, 255)}"


def six(draw):
    """Return an IPv6 address."""
    if draw.chance(0.4):
        return draw.choice(FAMOUS6)
    groups = [f"{draw.choice((0, 1, draw.integer(0, 65535))):x}" for _ in range(draw.integer(1, 3))]
    return f"{draw.choice(('2001:db8', 'fd00', '2a02:100', 'fe80'))}:{':'.join(groups)}::{draw.choice(('', '1', 'ab:cd'))}"


def masks(length):
    """Return a prefix length as a netmask and as a wildcard mask."""
    bits = (0xFFFFFFFF << (32 - length)) & 0xFFFFFFFF
    return str(IPv4Address(bits)), str(IPv4Address(bits ^ 0xFFFFFFFF))


def network(draw, low=8, high=30, version=0):
    """Return address and prefix length as arguments, the prefix length, and the most bits."""
    if version == 6 or not version and draw.chance(0.25):
        length = draw.choice((32, 48, 56, 64, 60, 120, 126, draw.integer(16, 127)))
        address = six(draw)
        words = draw.choice(
            (f"{address}/{length}", f"{address}/{length}", f"{address} {length}", f"{address} /{length}")
        )
        return words, length, 128
    length = draw.choice((24, 24, 16, draw.integer(low, high), draw.integer(low, high)))
    length = min(max(length, low), high)
    address = four(draw)
    mask, wildcard = masks(length)
    forms = [
        f"{address}/{length}",
        f"{address}/{length}",
        f"{address} {length}",
        f"{address} /{length}",
        f"{address}/{mask}",
        f"{address} {mask}",
    ]
    if 0 < length < 32:
        forms.append(f"{address} {wildcard}")
    return draw.choice(forms), length, 32


def split(draw, length, most):
    """Return options that split a network of a prefix length."""
    way = draw.integer(0, 2)
    deep = min(most - length, draw.choice((1, 2, 3, 4, 8)))
    if way == 0:
        return f"{draw.choice(('-p', '--prefix'))} {length + deep}"
    if way == 1:
        return f"{draw.choice(('-s', '--subnets'))} {draw.integer(1, 2**deep)}"
    bits = most - length - deep
    most_hosts = 2**bits - (2 if most == 32 and bits > 1 else 0)
    return f"{draw.choice(('-H', '--hosts'))} {max(1, draw.choice((most_hosts, most_hosts // 2 + 1, draw.integer(1, max(1, min(most_hosts, 5000))))))}"


BAD = (
    *(
        "192.168.1",
        "192.168.1.256/24",
        "192.168.01.1/24",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/",
        "2001:db8::/129",
        "2001:db8:::1",
        "hello",
        "10.0.0.1/24/8",
        "2001:db8::1/255.255.0.0",
        "1.2.3.4/255.0.255.0",
        "1.2.3.4/abc",
        "''",
        "' '",
        "/24",
        "192.168.1.1-5",
        "*",
        "10.0.0.0/8.5",
    ),
    *(
        "224.0.0.1",
        "240.0.0.1",
        "10.0.0.0/24 24",
        "10.0.0.0 33",
        "10.0.0.0 255.255.255.1",
        "2001:db8::1 255.255.255.0",
        "10.0.0.0 x",
        "10.0.0.0/ 24",
        "g::1",
        "1.2.3.4.5",
        "١.2.3.4",
        "fe80::1%eth0/64%",
        "10.1.1.1 /",
        "::1/",
        "300.1.1.1 8",
    ),
)


def invalid(draw, options=""):
    """Return a case with an address or mask that is none, or wrong usage."""
    options = f" {options}" if options else ""
    if draw.chance(0.6):
        return Case(f"{draw.tool} {draw.choice(BAD).replace('*', quote('*'))}{options}")
    words, length, most = network(draw)
    tail = draw.choice(
        (
            f"--{draw.word()}",
            "-Z",
            "-p",
            "-s",
            "--hosts",
            f"-p {draw.word()}",
            f"-s {draw.number(1, 5)}x",
            f"-H {draw.word()}",
            f"-p {length + 1} -s 2",
            "-s 2 -H 2",
            "-l x",
            "--limit",
            "8 extra",
            f"-p {most + 1}",
            f"-p {max(0, length - 1)}" if length else "-p -1",
            "-s 0",
            "-H 0",
            "-s -4",
            "-H -1",
        )
    )
    return Case(
        f"{draw.tool} {words}{options} {tail}"
        if tail != "8 extra"
        else f"{draw.tool} 10.0.0.1 8 extra{options}"
    )


def ended(draw, command):
    """Return a case, at times with the output in a file or only a part of it."""
    return Case(command + draw.choice(("", "", "", "", "", " > plan.txt", " | tail -n 4", " | grep -i host")))
