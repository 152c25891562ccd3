"""The home folder, for its owner alone.

The key file, the admin token and the embedded database live there.
"""

import base64
import contextlib
import json
import os
import secrets
import sys
from pathlib import Path

from kernel.keys import KeyRing

_KEY_BYTES = 32


def default_home() -> Path:
    """Return the folder for data of this program in the user's own data folder."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "tallystick"
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "tallystick"


def open_home(home: Path) -> Path:
    """Make the home folder if it is missing, for its owner alone."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    return home


def write_once(path: Path, content: str) -> str:
    """Write a file that only its owner can read, unless it is there; return what it holds.

    Two processes that start at once agree: the content is written aside and linked into place,
    which only one of them can do.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()
    return path.read_text(encoding="utf-8", errors="replace")


def admin_token_file(home: Path) -> Path:
    """Return where the admin token of this home stands."""
    return home / "admin-token"


def read_keys(path: Path) -> KeyRing:
    """Read the key file, making one with a first key if it is missing.

    The file is JSON, ``{"current": id, "keys": {id: base64}}``, oldest key first. It is never
    replaced: a new key is added by hand or by a key service, and the old ones stay to read what
    they wrote.

    Raises:
        ValueError: The file is not a key file; its content is never quoted.
    """
    first = {
        "current": "k1",
        "keys": {"k1": base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()},
    }
    try:
        held = json.loads(write_once(path, json.dumps(first, indent=2) + "\n"))
        keys = {
            str(key_id): base64.b64decode(key, validate=True)
            for key_id, key in held["keys"].items()
        }
        return KeyRing(str(held["current"]), keys)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        # Not its cause: that one holds the content.
        raise ValueError(f"{path} is not a key file.") from None
