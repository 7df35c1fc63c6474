"""An address is outside only if it is public and does not stand for another one, in every supported Python version."""

from __future__ import annotations

import ipaddress

import pytest

from runner.gateway import egress
from runner.gateway.addresses import is_public

PRIVATE = {
    "this network": ["0.0.0.0", "0.0.0.1", "0.255.255.255"],
    "private": ["10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.255"],
    "shared": ["100.64.0.1", "100.127.255.255", "100.100.100.200"],
    "loopback": ["127.0.0.1", "127.255.255.254", "::1"],
    "link-local": ["169.254.0.1", "169.254.169.254", "169.254.170.2", "fe80::1", "febf::1"],
    "protocols": [
        "192.0.0.1", "192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.192", "2001:1::1", "2001:3::1",
        "2001:4:112::1",
    ],
    "documentation": [
        "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::", "2001:db8:ffff::1", "3fff::1",
        "3fff:fff::1",
    ],
    "benchmarks": ["198.18.0.1", "198.19.255.255", "2001:2::1"],
    "relays": ["192.88.99.1", "192.88.99.255"],
    "multicast": ["224.0.0.1", "239.255.255.255", "232.0.0.1", "ff00::1", "ff02::1", "ff0e::1", "ff05::1:3"],
    "reserved": ["240.0.0.1", "255.255.255.254", "255.255.255.255", "4000::1", "8000::1", "5f00::1", "fe00::1"],
    "a cloud's own": ["168.63.129.16", "fd00:ec2::254", "fd20:ce::254"],
    "unspecified": ["::"],
    "unique local": ["fc00::1", "fd00::1", "fdff:ffff::1"],
    "site-local": ["fec0::1", "feff::1"],
    "discard": ["100::", "100::1", "100:0:0:1::1"],
    "mapped": ["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0", "::ffff:1.1.1.1"],
    "compatible": ["::127.0.0.1", "::10.0.0.1", "::169.254.169.254", "::1.1.1.1", "::ffff"],
    "stateless translation": ["::ffff:0:127.0.0.1", "::ffff:0:10.0.0.1", "::ffff:0:169.254.169.254"],
    "translated": [
        "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b::1.1.1.1", "64:ff9b:1::1",
        "64:ff9b:1:ffff::a9fe:a9fe", "64:ff9a::1",
    ],
    "6to4": ["2002::", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::", "2002:101:101::1"],
    "Teredo": ["2001::1", "2001:0:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2"],
    "ORCHID": ["2001:10::1", "2001:20::1", "2001:2f:ffff::1"],
    "ISATAP": [
        "fe80::5efe:7f00:1", "::5efe:127.0.0.1", "2606:4700::5efe:127.0.0.1", "2606:4700::200:5efe:7f00:1",
        "2606:4700:0:0:0:5efe:a9fe:a9fe", "2606:4700::300:5efe:a00:1", "2606:4700::100:5efe:a00:1",
    ],
    "with a zone": ["fe80::1%1", "::1%lo", "2606:4700::1%eth0"],
}  # fmt: skip
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "100.128.0.0"),
    *("126.255.255.255", "128.0.0.1", "151.101.0.223", "168.63.129.15", "168.63.129.17", "169.253.255.255"),
    *("169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.88.98.255"),
    *("192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "203.0.114.0", "223.255.255.255"),
    *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450:4001::1", "2620:fe::fe", "2400:cb00::1"),
    *(
        "2001:200::1",
        "2001:db7::1",
        "2001:db9::1",
        "2003::1",
        "2606:4700::5eff:7f00:1",
        "2606:4700::400:5efe:1:1",
    ),
    *("2606:4700::ffff:127.0.0.1", "3ffe::1", "3fff:1000::1"),
]


@pytest.mark.parametrize(
    "address",
    [pytest.param(one, id=f"{kind}: {one}") for kind, addresses in PRIVATE.items() for one in addresses],
)
def test_what_is_not_of_the_public_internet_is_not_outside(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    assert not egress.outside(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_of_the_public_internet_is_outside(address: str) -> None:
    """The networks right beside these are public."""
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "network", ["10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"]
)
@pytest.mark.parametrize(
    "form",
    [
        "::ffff:{0}", "::{0}", "::ffff:0:{0}", "64:ff9b::{0}", "64:ff9b:1::{0}", "2001:4860::5efe:{0}",
        "2001:4860::200:5efe:{0}", "fe80::5efe:{0}", "2002:{1}::", "2001:0:{1}::", "2001:0:4136:e378:0:0:{2}",
    ],
)  # fmt: skip
def test_no_form_of_a_private_address_is_outside(form: str, network: str) -> None:
    for address in (ipaddress.IPv4Network(network)[number] for number in (0, 1, 255, -1)):
        pair = f"{int(address) >> 16:x}:{int(address) & 0xFFFF:x}"
        inverted = f"{(int(address) >> 16) ^ 0xFFFF:x}:{(int(address) & 0xFFFF) ^ 0xFFFF:x}"
        assert not is_public(ipaddress.ip_address(form.format(address, pair, inverted)))


@pytest.mark.parametrize(
    "address",
    ["10.0.0.5", "172.17.0.2", "192.168.1.9", "203.0.113.80", "100.64.0.9", "fd12::5", "93.184.216.34"],
)
def test_a_trusted_host_may_lie_in_a_private_network(address: str) -> None:
    assert egress.near(ipaddress.ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3", "::1", "::", "::ffff:10.0.0.5", "64:ff9b::a00:5"),
        *("169.254.169.254", "168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::254", "fe80::1"),
        *("224.0.0.1", "255.255.255.255", "240.0.0.1", "ff02::1", "2002:a00:5::1"),
    ],
)
def test_not_even_a_trusted_host_is_this_machine_or_hands_out_credentials(address: str) -> None:
    assert not egress.near(ipaddress.ip_address(address))
