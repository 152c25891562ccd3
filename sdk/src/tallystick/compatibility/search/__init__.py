"""The search for a value in some sets, which is a proof where it finds none."""
