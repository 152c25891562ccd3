"""What a project says of itself under `[tool.tallystick]` in its pyproject.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from tallystick.commands.wrong_usage import WrongUsage

_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.tallystick"
_KEYS: Final = ("modules", "path")


@dataclass(frozen=True, slots=True)
class Settings:
    """A project's settings; all are empty where there are none.

    Args:
        modules: The modules that declare its tools.
        path: The folders in which they are looked for.
    """

    modules: tuple[str, ...] = ()
    path: tuple[Path, ...] = ()


def read_settings(beside: Path, cwd: Path) -> Settings:
    """Read the settings from the pyproject.toml in a folder, or else from the nearest above `cwd`.

    Args:
        beside: The folder of the lockfile.
        cwd: The folder in which the command runs.

    Raises:
        WrongUsage: The file cannot be read, or says what is no setting.
    """
    for folder in (beside, cwd, *cwd.parents):
        if (folder / _FILE).is_file():
            return _settings(folder / _FILE)
    return Settings()


def _settings(file: Path) -> Settings:
    table = _table(file)
    unknown = sorted(table.keys() - set(_KEYS))
    if unknown:
        raise WrongUsage(
            f"{file}: [{_TABLE}] has no key {unknown[0]!r}; it may have {' and '.join(_KEYS)}"
        )
    modules, path = (_texts(file, key, table.get(key, [])) for key in _KEYS)
    return Settings(modules, tuple(file.parent / folder for folder in path))


def _table(file: Path) -> Mapping[str, Any]:
    import tomllib

    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        # Both bad TOML and bad UTF-8 are a ValueError.
        raise WrongUsage(f"{file} cannot be read: {error}") from error
    match document:
        case {"tool": {"tallystick": table}}:
            if not isinstance(table, dict):
                raise WrongUsage(f"{file}: [{_TABLE}] is a table")
            return cast("dict[str, Any]", table)
        case _:
            return {}


def _texts(file: Path, key: str, value: object) -> tuple[str, ...]:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(each for each in items if isinstance(each, str))
    if len(texts) != len(items):
        raise WrongUsage(f'{file}: {key} in [{_TABLE}] is a list of texts, such as ["shop.tools"]')
    return texts
