"""Which network addresses a provider may be asked at. Pure: names are resolved elsewhere.

A contract names a host, and whoever owns that name says where it leads: also to this machine, to
its neighbours, or to what hands out a cloud's credentials. The list of allowed hosts alone does not
help against that, so every address is judged as well, right before it is connected to.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final

Address = IPv4Address | IPv6Address

PORTS: Final = {"http": 80, "https": 443}
"""Where a provider is asked whose address names no port."""

_UNICAST: Final = IPv6Network("2000::/3")  # all that is assigned for use between networks
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052: an address of IPv4 in the last 32 bits

# Global by the registries, and still inside: where the network itself answers.
_INSIDE: Final = tuple(
    map(
        ip_network,
        (
            "168.63.129.16/32",  # Azure's platform
            "192.0.0.0/24",  # protocol assignments, Oracle's platform among them
            "192.88.99.0/24",  # the nearest relay (RFC 7526)
            "3fff::/20",  # documentation (RFC 9637), unknown to older Pythons
        ),
    )
)
# Never a provider, not even where private addresses are let in: what hands out credentials.
_METADATA: Final = tuple(
    map(
        ip_network,
        (
            "169.254.0.0/16",
            "fe80::/10",
            "fd00:ec2::/32",  # Amazon
            "100.100.100.200/32",  # Alibaba
            "168.63.129.16/32",  # Azure
            "192.0.0.192/32",  # Oracle
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The ``host:port`` pairs that may be asked.

    Those in ``public`` only at addresses of the internet, those in ``private`` at any unicast
    address but where credentials are handed out.
    """

    public: frozenset[str] = frozenset()
    private: frozenset[str] = frozenset()

    def __contains__(self, place: str) -> bool:
        return place in self.public or place in self.private

    def may_be_at(self, place: str, addresses: Iterable[Address]) -> bool:
        """Tell whether a pair may be asked, given every address that its name leads to."""
        may_ask = is_unicast if place in self.private else is_public
        return place in self and all(may_ask(address) for address in addresses)


def is_public(address: Address) -> bool:
    """Tell whether an address is one of the internet's, for one receiver."""
    address = _destination(address)
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _INSIDE)
    )


def is_unicast(address: Address) -> bool:
    """Tell whether an address, be it private, is for one receiver and hands out no credentials."""
    address = _destination(address)
    return not (
        address.is_multicast
        or address.is_unspecified
        or (isinstance(address, IPv4Address) and address.is_reserved)
        or any(address in network for network in _METADATA)
    )


def _destination(address: Address) -> Address:
    """Return where an address leads: one of IPv6 may only carry another of IPv4."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address
