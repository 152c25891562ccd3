"""How a command ends."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a shell or a pipeline may act on. INTERRUPTED is the shell's own: 128 + SIGINT."""

    DONE = 0
    """It is done, and what was compared matches."""
    DIFFERS = 1
    """Something differs or was refused."""
    UNKNOWN = 2
    """It could not tell: wrong usage, a damaged lockfile, a module that fails to import."""
    UNREACHABLE = 3
    """The registry could not be reached."""
    INTERRUPTED = 130
