"""Every setting of the service, read once from the environment."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from server.home import default_home


class Settings(BaseSettings):
    """What the environment says, with defaults for a single machine."""

    model_config = SettingsConfigDict(env_prefix="TALLYSTICK_", frozen=True, extra="ignore")

    database_url: str | None = Field(
        default=None,
        repr=False,
        validation_alias=AliasChoices("DATABASE_URL", "database_url"),
        description="PostgreSQL 15 or newer; without it an embedded one runs in the home folder.",
    )
    home: Path = Field(
        default_factory=default_home, description="Where keys, the admin token and data live."
    )
    key_file: Path | None = Field(
        default=None, description="The key file, if it is not in the home folder."
    )
    host: str = "127.0.0.1"
    port: int = Field(default=8420, ge=0, le=65535)
    pool_size: int = Field(default=10, ge=2, le=1000)
    lease_seconds_max: float = Field(
        default=300,
        gt=0,
        description="How long a resolution may be relied on, and a retirement waits.",
    )
    request_bytes_max: int = Field(default=2 * 1024 * 1024, gt=0)
    sweep_seconds: float = Field(
        default=1, gt=0, description="How often the reconciler looks for work."
    )
    evidence_hosts: Annotated[frozenset[str], NoDecode] = Field(
        default=frozenset(),
        description="Comma-separated host:port pairs that evidence may be asked from; no other is.",
    )

    @classmethod
    def read(cls) -> Self:
        """Read the environment.

        Raises pydantic's ValidationError for a value that cannot be one.
        """
        return cls()

    @field_validator("evidence_hosts", mode="before")
    @classmethod
    def _split(cls, hosts: object) -> object:
        return (
            frozenset(part.strip() for part in hosts.split(",") if part.strip())
            if isinstance(hosts, str)
            else hosts
        )
