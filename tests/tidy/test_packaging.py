"""What we ship: pins, import names, and two wheels that hold what they should and no more."""

import importlib.metadata
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.tidy.rules import ROOT

OURS = {
    "access": "tallystick-server",
    "audit": "tallystick-server",
    "cli": "tallystick-server",
    "kernel": "tallystick-server",
    "ledger": "tallystick-server",
    "migrations": "tallystick-server",
    "reconciler": "tallystick-server",
    "registry": "tallystick-server",
    "rollout": "tallystick-server",
    "server": "tallystick-server",
    "tallystick": "tallystick",
}
HEAVY = ("fastapi", "jsonschema_rs", "psycopg", "ruamel", "sqlalchemy", "sqlmodel", "starlette")


def project(path: str) -> dict:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def pins(text: str) -> dict[str, str]:
    """Read a file of pins: the version of each distribution, by its canonical name."""
    found = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", text, flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


def unhashed(text: str) -> list[str]:
    """List the pins without a hash: pip would take whatever it is given for them."""
    entries = re.split(r"\n(?=\S)", text.strip())
    return [entry for entry in entries if not re.search(r"--hash=sha256:[0-9a-f]{64}", entry)]


def addresses(text: str) -> list[str]:
    """List the lines that name a place to download from: that is each machine's own affair."""
    marks = r"://|^\s*(-i|-f|--index-url|--extra-index-url|--find-links|--trusted-host)\b| @ "
    return [line for line in text.splitlines() if re.search(marks, line)]


def unmet(requirements: list[str], pinned: Mapping[str, str]) -> list[str]:
    """List the requirements that the pins do not meet."""

    def is_met(requirement: Requirement) -> bool:
        version = pinned.get(canonicalize_name(requirement.name))
        return version is not None and version in requirement.specifier

    return [text for text in requirements if not is_met(Requirement(text))]


def strangers(owners: Mapping[str, list[str]]) -> dict[str, set[str]]:
    """Return the distributions of others that own an import name of ours."""
    others = {name: set(owners.get(name, [])) - {owner} for name, owner in OURS.items()}
    return {name: found for name, found in others.items() if found}


def loaded_by(statement: str) -> set[str]:
    """Run a statement in a new interpreter; return the top-level modules that it loaded."""
    program = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True, timeout=60
    )
    return {name.partition(".")[0] for name in json.loads(run.stdout)}


def build_wheel(folder: Path, target: Path) -> list[str]:
    """Build the wheel of a folder; return the names of the files in it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", target],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=120,
    )
    (wheel,) = target.glob("*.whl")
    with ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.mark.parametrize("path", ["constraints.txt", "deploy/requirements.txt"])
def test_pins_have_hashes_and_no_address(path: str):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert unhashed(text) == []
    assert addresses(text) == []


def test_an_address_or_a_missing_hash_is_seen():
    assert unhashed("a==1 \\\n    --hash=sha256:" + "0" * 64 + "\nb==2\n") == ["b==2"]
    bad = ["--index-url x", "-f wheels", "a @ file", "# https://x", "--trusted-host x"]
    assert addresses("a==1 ; sys_platform == 'win32'\n" + "\n".join(bad)) == bad


def test_pins_meet_every_requirement():
    server, sdk = project("pyproject.toml"), project("sdk/pyproject.toml")
    runtime = server["project"]["dependencies"] + sdk["project"]["dependencies"]
    runtime = [requirement for requirement in runtime if not requirement.startswith("tallystick")]
    everything = runtime + server["dependency-groups"]["dev"]

    pinned = pins((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    deployed = pins((ROOT / "deploy/requirements.txt").read_text(encoding="utf-8"))

    assert unmet(everything, pinned) == [], "run `make constraints`"
    assert unmet(runtime, deployed) == [], "run `make constraints`"
    assert deployed.items() <= pinned.items(), "run `make constraints`"


def test_an_unmet_requirement_is_seen():
    assert unmet(["a>=2", "b", "c[x]<2"], {"a": "1", "c": "1.5"}) == ["a>=2", "b"]


def test_both_distributions_have_one_version():
    assert (
        project("pyproject.toml")["project"]["version"]
        == (project("sdk/pyproject.toml")["project"]["version"])
    )


def test_both_distributions_carry_one_licence():
    assert (ROOT / "sdk/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_no_other_distribution_owns_our_import_names():
    found = strangers(importlib.metadata.packages_distributions())
    assert not found, f"pip installs one over the other without a word; uninstall: {found}"


def test_a_stranger_is_seen():
    assert strangers({"cli": ["tallystick-server", "other"], "httpx": ["httpx"]}) == {
        "cli": {"other"}
    }


def test_the_sdk_is_light():
    loaded = loaded_by("import tallystick")
    assert loaded.isdisjoint(HEAVY), "load it where it is first used"
    assert loaded.isdisjoint(OURS.keys() - {"tallystick"})


def test_a_heavy_import_is_seen():
    assert {"fastapi", "psycopg"} <= loaded_by("import fastapi, psycopg")


def test_the_server_wheel_holds_its_packages_and_every_migration(tmp_path: Path):
    names = build_wheel(ROOT, tmp_path)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    migrations = {path.name for path in (ROOT / "migrations/versions").glob("*.py")}

    assert tops == OURS.keys() - {"tallystick"}
    assert migrations
    assert {f"migrations/versions/{name}" for name in migrations} <= set(names)
    assert {"migrations/env.py", "migrations/script.py.mako"} <= set(names)


def test_the_sdk_wheel_holds_one_package_with_its_data(tmp_path: Path):
    names = build_wheel(ROOT / "sdk", tmp_path)
    tops = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    source = ROOT / "sdk/src"
    tracked = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert tops == {"tallystick"}
    assert "tallystick/py.typed" in tracked
    assert tracked <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
