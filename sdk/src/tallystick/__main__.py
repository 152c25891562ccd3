"""Lets `python -m tallystick` do what `tallystick` does."""

import sys

from tallystick.commands.main import main

if __name__ == "__main__":
    sys.exit(main())
