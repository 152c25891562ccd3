"""The test vectors of the JSON Canonicalization Scheme (RFC 8785): its authors' and appendix B."""

import math
import struct
from pathlib import Path

import pytest

from tallystick.canonical import MalformedJson, canonical_bytes, parse_json

ROOT = Path(__file__).parents[2]
VECTORS = ROOT.parent / "shared" / "corpus" / "cyberphone-json-canonicalization" / "testdata"
NAMES = ("arrays", "french", "structures", "unicode", "values", "weird")


@pytest.mark.skipif(not VECTORS.is_dir(), reason=f"the vectors are not in {VECTORS}")
@pytest.mark.parametrize("name", NAMES)
def test_vector(name):
    read = parse_json((VECTORS / "input" / f"{name}.json").read_bytes())
    expected = bytes.fromhex((VECTORS / "outhex" / f"{name}.txt").read_text(encoding="ascii"))

    assert canonical_bytes(read) == expected
    assert (VECTORS / "output" / f"{name}.json").read_bytes() == expected
    assert canonical_bytes(parse_json(expected)) == expected


@pytest.mark.skipif(not VECTORS.is_dir(), reason=f"the vectors are not in {VECTORS}")
def test_no_vector_is_left_out():
    assert {path.stem for path in (VECTORS / "input").glob("*.json")} == set(NAMES)


# RFC 8785, appendix B: the bits of a double, and how it is written.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), NUMBERS)
def test_number(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))

    assert canonical_bytes(number) == text.encode()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_in_json_is_refused(number):
    with pytest.raises(MalformedJson):
        canonical_bytes(number)
