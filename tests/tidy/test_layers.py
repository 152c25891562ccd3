"""The contracts of import-linter agree with one another, and each can be broken."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.tidy.rules import PACKAGES, ROOT

CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
}

# a file, an import that it must not have, the contract that says so
FORBIDDEN = [
    ("kernel/keys.py", "import registry", "Packages point one way"),
    ("registry/service.py", "import ledger", "Packages point one way"),
    ("access/service.py", "import registry", "Packages point one way"),
    ("sdk/src/tallystick/errors.py", "import tallystick.client", "Inside the library"),
    (
        "sdk/src/tallystick/compatibility/verdict.py",
        "import tallystick.compatibility.judging",
        "The comparison points one way",
    ),
    (
        "sdk/src/tallystick/policy/terms.py",
        "import tallystick.policy.policy",
        "The policy points one way",
    ),
    (
        "sdk/src/tallystick/gates/denial.py",
        "import tallystick.gates.policy",
        "The gates point one way",
    ),
    (
        "sdk/src/tallystick/runtime/trace.py",
        "import tallystick.runtime.passage",
        "The runtime points one way",
    ),
    ("access/store.py", "import access.oidc", "Inside the access"),
    ("registry/tables.py", "import registry.store", "Inside the registry"),
    ("ledger/store.py", "import ledger.service", "Inside the ledger"),
    ("ledger/state.py", "import ledger.store", "Inside the ledger"),
    ("audit/verification.py", "import audit.store", "Inside the audit"),
    ("audit/service.py", "import ledger", "Packages point one way"),
    ("ledger/novel.py", "import json", "Inside the ledger"),
    ("rollout/retirement.py", "import rollout.store", "Inside the rollout"),
    ("reconciler/sources.py", "import reconciler.store", "Inside the reconciler"),
    ("ledger/transition.py", "import time", "The domain is pure"),
    ("registry/publication.py", "import sqlmodel", "The domain is pure"),
    (
        "ledger/service/__init__.py",
        "import psycopg",
        "Only stores, tables and the server speak SQL",
    ),
    ("cli/app.py", "import sqlalchemy", "Only stores, tables and the server speak SQL"),
    ("ledger/store.py", "import fastapi", "Only http modules and the server speak HTTP"),
    (
        "sdk/src/tallystick/errors.py",
        "import migrations",
        "The library imports nothing of the service",
    ),
]


def broken_contracts(root: Path) -> set[str]:
    """Run import-linter over a tree; return the names of the contracts that it broke."""
    program = "import sys; sys.path[:0] = ['', 'sdk/src']; from importlinter.cli import "
    program += "lint_imports_command; lint_imports_command()"
    run = subprocess.run(
        [sys.executable, "-c", program, "--no-logo", "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Contracts:" in run.stdout, run.stdout + run.stderr
    return {name for name in CONTRACTS if f"{name} BROKEN" in run.stdout}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, root / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return root


def test_every_domain_module_is_held_pure():
    domain = {
        f"{contract['containers'][0]}.{module}"
        for name, contract in CONTRACTS.items()
        if name.startswith("Inside the ")
        for module in re.split(" [:|] ", contract["layers"][-1])
    }
    assert domain
    assert domain <= set(CONTRACTS["The domain is pure"]["source_modules"])


def test_every_contract_is_shown_broken():
    assert {name for *_, name in FORBIDDEN} == CONTRACTS.keys()


@pytest.mark.parametrize(("path", "statement", "name"), FORBIDDEN)
def test_a_forbidden_import_breaks_its_contract(tree: Path, path: str, statement: str, name: str):
    file = tree / path
    kept = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text((kept or "") + f"\n{statement}\n", encoding="utf-8")
    try:
        assert name in broken_contracts(tree)
    finally:
        file.unlink() if kept is None else file.write_text(kept, encoding="utf-8")
