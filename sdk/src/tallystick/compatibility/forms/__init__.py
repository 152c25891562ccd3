"""Schemas rewritten: in one dialect, with local references, and closed."""
