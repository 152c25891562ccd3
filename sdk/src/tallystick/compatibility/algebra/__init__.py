"""Schemas read into sets of values."""
