"""`python -m cli` is the `registry` command."""

from cli.app import main

main()
