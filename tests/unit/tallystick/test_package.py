"""What importing the library offers, and what it costs."""

import subprocess
import sys

import pytest

import tallystick

HEAVY = ("asyncio", "httpx", "jsonschema_rs", "pydantic", "rfc8785", "ruamel.yaml")


@pytest.mark.parametrize("name", tallystick.__all__)
def test_public_name_is_there(name):
    assert getattr(tallystick, name) is not None


def test_public_names_are_listed_before_they_are_used():
    report = "import tallystick; print({*tallystick.__all__} <= {*dir(tallystick)})"
    run = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60
    )

    assert run.stdout == "True\n"


def test_unknown_name_is_refused_as_python_does():
    with pytest.raises(AttributeError, match="no attribute 'Contarct'"):
        _ = tallystick.Contarct  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    "statement",
    [
        "import tallystick",
        "from tallystick import errors, Refusal",
        "from tallystick import parse_json; parse_json('{}')",
        "from tallystick import Contract, ToolReference, EffectClass, Version",
        "from tallystick import Catalog; Catalog([])",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_used(statement):
    report = f"{statement}; import sys; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", report], capture_output=True, text=True, check=True, timeout=60
    )

    assert run.stdout == "[]\n"
