"""The one error of this package."""


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot be used; the message says why, in a sentence."""
