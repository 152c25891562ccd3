"""The `tallystick` command: checks code against its lockfile, and accepts what has changed."""
