"""Whole contracts: inputs and outputs in both directions, and the version rule."""
