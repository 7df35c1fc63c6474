"""Facts of a network."""

from _nets import BAD, ended, four, invalid, masks, network, six
from fuzz import Case


def common(draw):
    """Return a case that describes a network, with or without a mask."""
    if draw.chance(0.2):
        address = four(draw)
        if int(address.split(".")[0]) >= 224:
            address = f"{draw.integer(1, 223)}.{draw.integer(0, 255)}.0.1"
        return ended(draw, f"{draw.tool} {draw.choice((address, address, six(draw)))}")
    words, _, _ = network(draw, 1, 32)
    return ended(draw, f"{draw.tool} {words}")


def boundary(draw):
    """Return a case at the ends of addresses and masks."""
    address = draw.choice(
        (
            "0.0.0.0",
            "255.255.255.255",
            "10.20.30.40",
            "224.0.0.9",
            "127.255.255.255",
            "::",
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            "2001:db8::1",
            "2600:2:3:4:5:6:7:8",
            "ff05::2",
            "febf::1",
            "::1",
        )
    )
    length = draw.choice((0, 1, 7, 8, 30, 31, 32) if ":" not in address else (0, 1, 3, 64, 126, 127, 128))
    if ":" not in address and draw.chance(0.5):
        mask, wildcard = masks(length)
        return Case(f"{draw.tool} {address} {draw.choice((mask, wildcard))}")
    return Case(
        f"{draw.tool} {draw.choice((f'{address}/{length}', f'{address} {length}', f' {address}/{length} ', f'{address} //{length}', f'{address}/0{length}'))}".replace(
            "  ", " "
        ).strip()
    )


def error(draw):
    """Return a case with an address or mask that is none, or wrong usage."""
    return (
        Case(f"{draw.tool} {draw.choice(BAD)}".replace(" *", " '*'")) if draw.chance(0.4) else invalid(draw)
    )
