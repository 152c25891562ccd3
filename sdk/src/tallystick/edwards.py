"""Points of edwards25519, the curve of Ed25519 (RFC 8032, 5.1): enough to tell a sound public key.

Pure. It sees public keys alone, so that the time it takes may depend on them.
"""

from typing import Final, TypeAlias

ORDER: Final = 2**252 + 27742317777372353535851937790883648493
"""How many points the subgroup has that keys and signatures are made in."""

_PRIME: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_ONE: Final = pow(2, (_PRIME - 1) // 4, _PRIME)

# X, Y, Z and T with x = X/Z, y = Y/Z and xy = T/Z: additions take no division.
_Point: TypeAlias = tuple[int, int, int, int]
_IDENTITY: Final[_Point] = (0, 1, 1, 0)


def has_prime_order(encoded: bytes) -> bool:
    """Tell whether 32 bytes are the one encoding of a point that a key pair can have.

    Of a point of small order, anybody can make a signature that fits many messages, or all; every
    honest key is a multiple of the base point, and so of prime order.
    """
    point = _decoded(encoded)
    if point is None or _is_identity(point):
        return False
    product = _IDENTITY
    for bit in f"{ORDER:b}":
        product = _add(product, product)
        if bit == "1":
            product = _add(product, point)
    return _is_identity(product)


def _decoded(encoded: bytes) -> _Point | None:
    """Return the point that is encoded (RFC 8032, 5.1.3), or None if there is none."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & (1 << 255) - 1
    if y >= _PRIME:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _PRIME) % _PRIME
    x = pow(square, (_PRIME + 3) // 8, _PRIME)
    if x * x % _PRIME != square:
        x = x * _ROOT_OF_MINUS_ONE % _PRIME
    if x * x % _PRIME != square or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _PRIME - x
    return x, y, 1, x * y % _PRIME


def _add(one: _Point, other: _Point) -> _Point:
    """Add two points, which may be the same (RFC 8032, 5.1.4)."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % _PRIME
    b = (one[1] + one[0]) * (other[1] + other[0]) % _PRIME
    c = 2 * one[3] * other[3] * _D % _PRIME
    d = 2 * one[2] * other[2] % _PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _PRIME, g * h % _PRIME, f * g % _PRIME, e * h % _PRIME


def _is_identity(point: _Point) -> bool:
    x, y, z, _ = point
    return x % _PRIME == 0 and (y - z) % _PRIME == 0
