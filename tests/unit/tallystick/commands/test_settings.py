import pytest

from tallystick.commands.settings import Settings, read_settings
from tallystick.commands.wrong_usage import WrongUsage


@pytest.fixture
def folders(tmp_path):
    """Return a folder with a lockfile, and one to stand in, two levels below another."""
    beside, cwd = tmp_path / "locks", tmp_path / "shop" / "src"
    beside.mkdir()
    cwd.mkdir(parents=True)
    return beside, cwd


def write(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")


def test_without_a_project_there_are_none(folders):
    assert read_settings(*folders) == Settings()


def test_the_nearest_project_above_counts(folders):
    _, cwd = folders
    write(cwd.parent, '[tool.tallystick]\nmodules = ["shop.tools"]\npath = ["src", "/lib"]')
    found = read_settings(*folders)
    assert found.modules == ("shop.tools",)
    assert [str(folder) for folder in found.path] == [str(cwd.parent / "src"), "/lib"]


def test_the_project_beside_the_lockfile_goes_before_it(folders):
    beside, cwd = folders
    write(cwd, '[tool.tallystick]\nmodules = ["cwd"]')
    write(beside, '[tool.tallystick]\nmodules = ["beside"]')
    assert read_settings(beside, cwd).modules == ("beside",)


def test_a_project_that_says_nothing_of_tools_is_none_that_is_wrong(folders):
    write(folders[0], "[tool.other]\nmodules = 1")
    assert read_settings(*folders) == Settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool", "cannot be read: "),
        ("[tool]\ntallystick = 1", "[tool.tallystick] is a table"),
        ("[tool.tallystick]\nmodule = []", "has no key 'module'; it may have modules and path"),
        ('[tool.tallystick]\nmodules = "shop"', "modules in [tool.tallystick] is a list of texts"),
        ("[tool.tallystick]\npath = [1]", "path in [tool.tallystick] is a list of texts"),
    ],
)
def test_what_is_no_setting_is_refused(folders, text, told):
    write(folders[0], text)
    with pytest.raises(WrongUsage) as refused:
        read_settings(*folders)
    assert told in refused.value.detail
    assert str(folders[0] / "pyproject.toml") in refused.value.detail


def test_bytes_that_are_no_text_are_refused(folders):
    (folders[0] / "pyproject.toml").write_bytes(b"\xff\xff")
    with pytest.raises(WrongUsage, match="cannot be read"):
        read_settings(*folders)
