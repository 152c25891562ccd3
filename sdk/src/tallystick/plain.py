"""Text of others, so that no terminal obeys what is in it."""

import json


def plain(value: object) -> str:
    """Write any value on one line, with nothing in it that a terminal would obey."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
