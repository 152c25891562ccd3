"""A tool's lockfile is the one of its own project."""

from pathlib import Path

import pytest

from tallystick.lockfile.location import ROOT_MARKS, lockfile_for


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project/shop/deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path / "project"


def found(file: Path | str | None, cwd: Path, **environment: str) -> Path:
    return lockfile_for(None if file is None else str(file), environment=environment, cwd=cwd)


@pytest.mark.parametrize("mark", ROOT_MARKS)
def test_new_lockfile_belongs_to_the_root_of_the_codes_project(project, mark):
    (project / mark).touch()
    expected = project / "tallystick.lock"
    elsewhere = project.parent / "elsewhere"
    assert found(project / "shop/deep/tools.py", elsewhere) == expected
    assert found(project / "tools.py", elsewhere) == expected
    assert found(None, project / "shop") == expected


def test_nearest_lockfile_wins_up_to_the_root(project):
    (project / "pyproject.toml").touch()
    (project / "shop/tallystick.lock").touch()
    (project.parent / "tallystick.lock").touch()
    cwd = project.parent / "elsewhere"

    assert found(project / "shop/deep/tools.py", cwd) == project / "shop/tallystick.lock"
    assert found(project / "tools.py", cwd) == project / "tallystick.lock"


def test_lockfile_above_code_without_a_project_is_found(project):
    (project / "tallystick.lock").touch()
    found_from = found(project / "shop/tools.py", project.parent / "elsewhere")
    assert found_from == project / "tallystick.lock"


def test_code_without_a_project_belongs_to_the_working_folders_project(project):
    (project / "setup.py").touch()
    for file in (project.parent / "elsewhere/tools.py", "/nowhere/ipykernel_1/2.py", None):
        assert found(file, project / "shop") == project / "tallystick.lock"


def test_without_any_project_it_is_in_the_working_folder(project):
    for file in (project / "shop/tools.py", "<stdin>", None):
        assert found(file, project) == project / "tallystick.lock"


def test_lockfile_that_leads_nowhere_yet_is_one(project):
    (project / "pyproject.toml").touch()
    (project / "shop/tallystick.lock").symlink_to("missing/tallystick.lock")
    assert found(project / "shop/tools.py", project) == project / "shop/tallystick.lock"


def test_path_that_goes_up_and_down_is_the_shorter_one(project):
    (project / "shop/setup.cfg").touch()
    (project / "pyproject.toml").touch()
    assert found(project / "shop/../tools.py", project) == project / "tallystick.lock"
    assert found("shop/../tools.py", project) == project / "tallystick.lock"


def test_environment_names_another(project):
    (project / "pyproject.toml").touch()
    file, cwd = project / "shop/tools.py", project.parent
    assert found(file, cwd, TALLYSTICK_LOCKFILE="/etc/my.lock") == Path("/etc/my.lock")
    assert found(file, cwd, TALLYSTICK_LOCKFILE="my.lock") == cwd / "my.lock"
    assert found(file, cwd, TALLYSTICK_LOCKFILE="") == project / "tallystick.lock"
