"""Token buckets by a clock of our own, and what of an address a client cannot choose."""

import pytest

from server.limits import Buckets, Rate, origin_of


class Clock:
    """A clock that goes only when it is told to."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def taken(buckets: Buckets, key: str, wanted: int) -> int:
    """Take as many as there are, but no more than are wanted."""
    count = 0
    while count < wanted and not buckets.wait(key):
        buckets.take(key)
        count += 1
    return count


def test_a_burst_at_once_and_then_the_rate():
    clock = Clock()
    buckets = Buckets(Rate(per_second=4, burst=3), clock)
    assert taken(buckets, "a", 10) == 3
    assert buckets.wait("a") == pytest.approx(0.25)
    clock.now += 0.25
    assert taken(buckets, "a", 10) == 1
    clock.now += 0.5
    assert taken(buckets, "a", 10) == 2
    clock.now += 1e6
    assert taken(buckets, "a", 10) == 3, "no more than a burst is ever saved"


def test_a_steady_client_at_the_rate_never_waits():
    clock = Clock()
    buckets = Buckets(Rate(per_second=10, burst=1), clock)
    for _ in range(10_000):
        assert taken(buckets, "a", 1) == 1
        clock.now += 0.1


def test_each_key_has_its_own():
    buckets = Buckets(Rate(per_second=1, burst=2), Clock())
    assert taken(buckets, "a", 5) == 2
    assert taken(buckets, "b", 5) == 2


def test_a_debt_is_waited_for():
    clock = Clock()
    buckets = Buckets(Rate(per_second=1, burst=1), clock)
    for _ in range(5):
        buckets.take("a")
    assert buckets.wait("a") == pytest.approx(5)
    clock.now += 4
    assert buckets.wait("a") == pytest.approx(1)


def test_a_wait_takes_nothing_and_keeps_nothing():
    buckets = Buckets(Rate(per_second=1, burst=1), Clock())
    assert [buckets.wait("a") for _ in range(3)] == [0.0, 0.0, 0.0]
    assert "a" not in buckets


def test_only_so_many_keys_are_kept_and_the_least_used_goes():
    buckets = Buckets(Rate(per_second=1, burst=1), Clock(), keys_max=3)
    for key in ("a", "b", "c", "a", "d"):
        buckets.take(key)
    assert [key in buckets for key in "abcd"] == [True, False, True, True]
    for number in range(1000):
        buckets.take(str(number))
    assert sum(str(number) in buckets for number in range(1000)) == 3


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_an_address_counts_as_what_its_client_cannot_choose(host: str, origin: str):
    assert origin_of(host) == origin
