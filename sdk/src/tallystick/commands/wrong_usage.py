"""The refusal of a command that was called in a way that cannot work."""

from tallystick.errors import LocalRefusal


class WrongUsage(LocalRefusal):
    """The command was not called as it has to be."""

    code = "wrong_usage"
