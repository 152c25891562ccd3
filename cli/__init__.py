"""The `registry` command."""
