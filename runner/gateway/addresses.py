"""Which network addresses belong to the public internet. Pure, and with the standard library only.

`ipaddress.is_global` alone will not do: what it says of an address depends on the version of Python, and it takes
addresses for public that stand for a private one, such as those of translators and tunnels.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that IANA has set aside for public hosts. Outside lie loopback, link-local and private addresses, multicast, and
IPv4 addresses written as IPv6: mapped, compatible, and translated (64:ff9b::/96)."""
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
"""What versions of Python disagree about, or take for public."""
ISATAP = 0x5EFE
"""Between the bits of the network and an IPv4 address that is tunnelled to."""
ISATAP_FLAGS = 0xFCFF
"""Of the 16 bits before, those that are zero: not the two that say whether the address is unique and of a group."""


def is_public(address: Address) -> bool:
    """Whether an address is one of the public internet, and stands for no other."""
    if any(address in network for network in NOT_PUBLIC if network.version == address.version):
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    flags, marker = int(address) >> 48 & 0xFFFF, int(address) >> 32 & 0xFFFF
    tunnelled = marker == ISATAP and not flags & ISATAP_FLAGS
    return address.is_global and address in UNICAST and address.scope_id is None and not tunnelled
