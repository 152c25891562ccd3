"""The secrets that providers are asked with, or sign with, and to whom each of them belongs."""

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ledger.webhook import check_secret
from reconciler.sources import Asker
from tallystick.canonical import MalformedJson, parse_json

_VARIABLE: Final = "TALLYSTICK_SECRET_"
_VARIABLES_TENANT: Final = "default"


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    host: Annotated[str, Field(pattern=r"^[^\s/@]+:[0-9]{1,5}$")]
    secret: Annotated[str, Field(min_length=1)] = Field(repr=False)


class _Signing(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    webhook: Annotated[
        tuple[Annotated[str, AfterValidator(check_secret)], ...],
        Field(min_length=1, max_length=4, strict=False),
    ] = Field(repr=False)


_FILE: Final = TypeAdapter(dict[str, dict[str, _Kept | _Signing]])


@dataclass(frozen=True, slots=True)
class Secrets:
    """Every secret that the reconciler may send, or a provider sign with.

    Attributes:
        kept: Those of the file, by tenant and slot, or by tenant and source of messages.
        variables: The environment. Its ``TALLYSTICK_SECRET_<NAME>`` are those of the tenant
            `default`, for the contracts that it publishes itself; they name no host.
    """

    kept: Mapping[str, Mapping[str, _Kept | _Signing]] = field(repr=False)
    variables: Mapping[str, str] = field(repr=False)

    def __call__(self, asker: Asker, slot: str, host: str) -> str | None:
        """Return an asker's secret for a ``host:port``, or None.

        What the file says of a slot is all there is of it.
        """
        kept = self.kept.get(asker.tenant, {}).get(slot)
        if kept is not None:
            return kept.secret if isinstance(kept, _Kept) and kept.host == host else None
        if asker.tenant != _VARIABLES_TENANT or not asker.is_publisher:
            return None
        return self.variables.get(_VARIABLE + re.sub("[^A-Z0-9]", "_", slot.upper()))

    def signing(self, tenant: str, source: str) -> tuple[str, ...]:
        """Return the secrets that a tenant's source of messages may sign with."""
        kept = self.kept.get(tenant, {}).get(source)
        return kept.webhook if isinstance(kept, _Signing) else ()


def read_secrets(path: Path | None) -> Secrets:
    """Read the secrets of the file, if there is one, and of the environment.

    The file is JSON, ``{tenant: {slot: {"host": "host:port", "secret": text}}}``, and for a source
    of signed messages ``{tenant: {source: {"webhook": ["whsec_..."]}}}``.

    Raises:
        OSError: The file cannot be read.
        ValueError: Others may read it, or it is no such file; its content is never quoted.
    """
    if path is None:
        return Secrets({}, os.environ)
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & (stat.S_IROTH | stat.S_IWOTH):
            raise ValueError(f"{path} holds secrets, and others may read or write it.")
        content = file.read()
    try:
        return Secrets(_FILE.validate_python(parse_json(content)), os.environ)
    except (MalformedJson, ValidationError):
        # Not its cause: that one holds the content.
        raise ValueError(f"{path} is not a file of secrets.") from None
