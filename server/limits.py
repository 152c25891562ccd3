"""How much one client may ask for: sizes, seconds, how often. Pure: the clock is an argument."""

import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

KEYS_MAX: Final = 10_000
_ROUNDING_SECONDS: Final = 1e-6  # what sums of floats may be off by
# Whoever has one address of IPv6 has as many as there are in a network of this size.
_NETWORK_BITS: Final = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """How often something may happen: ``burst`` times at once, then ``per_second``."""

    per_second: float
    burst: int


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request may cost.

    ``body_seconds_max`` is how long a body may take to arrive, ``request_seconds_max`` how long an
    answer may take to begin. ``requests`` is for each token, ``guesses`` for each address that
    sends tokens which are not known.
    """

    request_bytes_max: int
    body_seconds_max: float
    request_seconds_max: float
    requests: Rate
    guesses: Rate


class Buckets:
    """A token bucket for each key.

    No more than ``keys_max`` are kept. The one that was used least recently is forgotten first, and
    a key that was forgotten begins with a full bucket.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float], *, keys_max: int = KEYS_MAX) -> None:
        """Take the rate of every bucket and a clock in seconds that never goes back."""
        self._seconds_each = 1 / rate.per_second
        self._seconds_whole = rate.burst * self._seconds_each
        self._clock = clock
        self._keys_max = keys_max
        # All that is to be known of a bucket: when it is full again.
        self._full_at: OrderedDict[Hashable, float] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._full_at

    def wait(self, key: Hashable) -> float:
        """Return for how many seconds there is none to take: 0 if there is one."""
        now = self._clock()
        wait = self._full_at.get(key, now) + self._seconds_each - self._seconds_whole - now
        return wait if wait > _ROUNDING_SECONDS else 0.0

    def take(self, key: Hashable) -> None:
        """Take one, be there one or not: a debt is waited for as well."""
        now = self._clock()
        self._full_at[key] = max(self._full_at.get(key, now), now) + self._seconds_each
        self._full_at.move_to_end(key)
        if len(self._full_at) > self._keys_max:
            self._full_at.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        """Keep nothing of a key."""
        self._full_at.pop(key, None)


def origin_of(host: str) -> str:
    """Return what one client cannot choose of its address: that of IPv4, or the network of IPv6."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), _NETWORK_BITS), strict=False))
