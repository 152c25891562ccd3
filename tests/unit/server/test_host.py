"""Where the service listens, and what it says of that."""

import logging

import pytest

from server.app import warn_beyond_loopback


@pytest.mark.parametrize(
    ("host", "warned"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("0.0.0.0", True), ("::", True)],
)
def test_tokens_that_leave_the_machine_are_warned_of(
    caplog: pytest.LogCaptureFixture, host: str, warned: bool
):
    caplog.set_level(logging.WARNING, logger="tallystick.server")
    warn_beyond_loopback(host)
    assert [one.getMessage() for one in caplog.records] == (
        [f"listening on {host} without TLS: let only what ends TLS reach it"] if warned else []
    )
