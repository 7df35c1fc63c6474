"""Test whether a network address belongs to the public internet. Pure, with the standard library only.

`ipaddress.is_global` is not enough: its answers differ between versions of Python, and it accepts addresses that stand
for private ones, such as those of translators and tunnels.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

UNICAST = ipaddress.IPv6Network("2000::/3")
"""The addresses that IANA assigns to public hosts. Outside are loopback, link-local and private addresses, multicast,
and IPv4 addresses written as IPv6: mapped, compatible, and translated (64:ff9b::/96)."""
NOT_PUBLIC = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",  # protocols; one cloud hands out credentials here
            "192.88.99.0/24",  # relays to 6to4
            "168.63.129.16/32",  # public, and inside every machine of another cloud
            "2001::/23",  # protocols; among them Teredo, which wraps IPv4
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, which wraps IPv4
            "3fff::/20",  # documentation
        ),
    )
)
"""Networks that some version of Python takes for public."""
INNER = tuple(map(ipaddress.ip_network, ("100.64.0.0/10", "fc00::/7")))
"""Private networks that some version of Python's `ipaddress` does not call private."""
METADATA = tuple(
    map(
        ipaddress.ip_network,
        ("168.63.129.16/32", "192.0.0.0/24", "100.100.100.200/32", "fd00:ec2::/32"),
    )
)
"""Addresses at which clouds hand out credentials; most others are link-local."""
ISATAP = 0x5EFE
"""Marker between the bits of the network and the IPv4 address of a tunnel."""
ISATAP_FLAGS = 0xFCFF
"""Mask of the 16 bits before the marker that must be zero: all but the bits for a unique and a group address."""


def is_public(address: Address) -> bool:
    """Return whether an address belongs to the public internet and does not stand for another address."""
    if any(address in network for network in NOT_PUBLIC if network.version == address.version):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    flags, marker = int(address) >> 48 & 0xFFFF, int(address) >> 32 & 0xFFFF
    tunnelled = marker == ISATAP and not flags & ISATAP_FLAGS
    return address.is_global and address in UNICAST and address.scope_id is None and not tunnelled


def is_inner(address: Address) -> bool:
    """Return whether an address may be a server in a private network of this machine's user.

    Addresses of the machine itself, of its link, of groups and of a cloud's metadata do not count, and neither do IPv6
    addresses that stand for other addresses.
    """
    if any(address in network for network in METADATA if network.version == address.version):
        return False
    if any(address in network for network in INNER if network.version == address.version):
        return True
    if isinstance(address, ipaddress.IPv6Address):
        return False
    odd = address.is_loopback or address.is_link_local or address.is_multicast or address.is_reserved
    return address.is_private and not odd and int(address) >> 24 != 0
