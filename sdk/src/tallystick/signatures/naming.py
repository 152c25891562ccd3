"""The stable name of a tool: what its author states, or where its code stands."""

import re
from typing import Final

from tallystick.errors import SignatureUnsupported
from tallystick.signatures.target import Origin

NAME_CHARS_MAX: Final = 128
NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_-]*(\.[A-Za-z][A-Za-z0-9_-]*)*$"  # as a contract's

_NAME: Final = re.compile(NAME_PATTERN.removesuffix("$") + r"\Z")


def name_of(origin: Origin, stated: str | None = None) -> str:
    """Return a tool's name: the stated one, or else the module and the qualified name of its code.

    Raises:
        SignatureUnsupported: That is no name of a contract.
    """
    name = f"{origin.module}.{origin.qualname}" if stated is None else stated
    if len(name) <= NAME_CHARS_MAX and _NAME.match(name):
        return name
    rule = (
        f"a tool's name has at most {NAME_CHARS_MAX} characters, and each of its parts begins with"
        " a letter and goes on in letters, digits, _ or -"
    )
    if stated is None:
        raise SignatureUnsupported(
            f"{name}: {rule}; state another, as in name='search'", facts={"tool": name}
        )
    raise SignatureUnsupported(f"{name!r}: {rule}", facts={"tool": name})
