"""Compatibility of schemas and contracts: a verdict with a proof or a witness, never a guess.

from tallystick import compare

compare({"type": "string"}, {"type": "string", "minLength": 1}).witness.value  # ""
"""
