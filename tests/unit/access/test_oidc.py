"""Which way to an issuer is private."""

import pytest

from access.oidc import is_private_way


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://issuer.example", True),
        ("https://issuer.example:8443/realms/a", True),
        ("http://127.0.0.1:80", True),
        ("http://localhost:8080/a", True),
        ("http://[::1]:8080", True),
        ("http://issuer.example", False),
        ("http://10.0.0.1", False),
        ("http://127.0.0.1.issuer.example", False),
        ("http://localhost@issuer.example", False),
        ("https://user:secret@issuer.example", False),
        ("https://", False),
        ("https://issuer.example:port", False),
        ("https://issuer.example:0", False),
        ("https://[", False),
        ("file:///etc/passwd", False),
        ("ftp://localhost", False),
        ("issuer.example", False),
        ("", False),
    ],
)
def test_keys_come_a_private_way_or_not_at_all(url: str, expected: bool):
    assert is_private_way(url) is expected
