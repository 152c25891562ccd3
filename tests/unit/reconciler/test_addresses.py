"""Where evidence may be asked: each address by its kind, and each name by all its addresses."""

from ipaddress import ip_address

import pytest

from reconciler.addresses import Hosts, is_public, is_unicast

# of the internet
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]
# of this machine or its network; let in where an operator says so
PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "198.18.0.1",
    "192.0.2.1",
    "192.0.0.9",
    "192.88.99.1",
    "::1",
    "fc00::1",
    "fd12:3456::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "::127.0.0.1",
    "::ffff:0:127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::127.0.0.1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:10::1",
]
# nobody's, everybody's, or what hands out the credentials of a cloud
NEVER = [
    "0.0.0.0",
    "::",
    "255.255.255.255",
    "240.0.0.1",
    "224.0.0.1",
    "239.255.255.250",
    "ff02::1",
    "ff0e::1",
    "169.254.169.254",
    "169.254.170.2",
    "169.254.0.1",
    "168.63.129.16",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "::ffff:169.254.169.254",
    "::ffff:0.0.0.0",
    "64:ff9b::169.254.169.254",
    "2002:a9fe:a9fe::1",
]


@pytest.mark.parametrize(
    ("text", "public", "unicast"),
    [
        *((text, True, True) for text in PUBLIC),
        *((text, False, True) for text in PRIVATE),
        *((text, False, False) for text in NEVER),
    ],
)
def test_kinds_of_addresses(text: str, public: bool, unicast: bool):
    address = ip_address(text)
    assert (is_public(address), is_unicast(address)) == (public, unicast)


def test_every_address_of_a_name_must_pass():
    hosts = Hosts(frozenset({"a.example:443"}), frozenset({"b.internal:80"}))
    outside, inside, never = map(ip_address, ("8.8.8.8", "10.0.0.1", "169.254.169.254"))
    for place, addresses, may in (
        ("a.example:443", [outside], True),
        ("a.example:443", [outside, outside], True),
        ("a.example:443", [inside], False),
        ("a.example:443", [outside, inside], False),
        ("a.example:443", [inside, outside], False),
        ("b.internal:80", [inside], True),
        ("b.internal:80", [inside, outside], True),
        ("b.internal:80", [inside, never], False),
        ("b.internal:81", [inside], False),
        ("c.example:443", [outside], False),
    ):
        assert hosts.may_be_at(place, addresses) is may, (place, addresses)


def test_only_pairs_in_a_list_are_there():
    hosts = Hosts(frozenset({"a:1"}), frozenset({"b:2"}))
    assert [place in hosts for place in ("a:1", "b:2", "a:2", "a", "*", "")] == [
        *(True, True, False, False, False, False)
    ]
    assert "a:1" not in Hosts()
