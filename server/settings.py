"""Every setting of the service, read once from the environment."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AliasChoices, Field, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from access.oidc import is_private_way
from reconciler.addresses import Hosts
from server.home import default_home
from server.limits import Limits, Rate


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
    approval_seconds: float = Field(
        default=86400,
        gt=0,
        le=366 * 86400,
        description="How long an approval waits to be given and used.",
    )
    request_bytes_max: int = Field(default=2 * 1024 * 1024, gt=0)
    body_seconds_max: float = Field(
        default=10, gt=0, description="How long the body of a request may take to arrive."
    )
    request_seconds_max: float = Field(
        default=30, gt=0, description="How long an answer may take to begin."
    )
    rate_per_second: float = Field(
        default=500, gt=0, description="How many requests a second each token may send."
    )
    rate_burst: int = Field(default=1000, ge=1, description="How many of them at once.")
    trusted_proxies: str = Field(
        default="",
        description="Comma-separated addresses or networks whose `X-Forwarded-For` is believed.",
    )
    guesses_per_minute: int = Field(
        default=60, ge=1, description="How many unknown tokens an address may send."
    )
    sweep_seconds: float = Field(
        default=1, gt=0, description="How often the reconciler looks for work."
    )
    reverse_sweep_seconds: float = Field(
        default=300, gt=0, description="How often the listings of providers are read."
    )
    seal_seconds: float = Field(
        default=10, gt=0, description="How often what was written is sealed for the audit."
    )
    evidence_hosts: Annotated[frozenset[str], NoDecode] = Field(
        default=frozenset(),
        description="Comma-separated host:port pairs that may be asked, at public addresses.",
    )
    evidence_private_hosts: Annotated[frozenset[str], NoDecode] = Field(
        default=frozenset(),
        description="Those that may also be asked at private addresses, such as loopback.",
    )
    secrets_file: Path | None = Field(
        default=None,
        description="The secrets that providers are asked with: JSON that others cannot read.",
    )

    oidc_issuer: str | None = Field(
        default=None, description="Whose signed tokens are believed, as their `iss` says it."
    )
    oidc_audience: str | None = Field(
        default=None,
        min_length=1,
        validate_default=True,
        description="The `aud` of tokens that are meant for us.",
    )
    oidc_jwks_url: str | None = Field(
        default=None, description="Where the issuer's keys are, if it is not to be discovered."
    )
    oidc_tenant_claim: str = Field(
        default="tallystick_tenant", min_length=1, description="The claim with the tenant's slug."
    )
    oidc_roles_claim: str = Field(
        default="tallystick_roles", min_length=1, description="The claim with the list of roles."
    )

    @property
    def limits(self) -> Limits:
        """What a request may cost."""
        guesses = self.guesses_per_minute
        return Limits(
            request_bytes_max=self.request_bytes_max,
            body_seconds_max=self.body_seconds_max,
            request_seconds_max=self.request_seconds_max,
            requests=Rate(self.rate_per_second, self.rate_burst),
            guesses=Rate(guesses / 60, guesses),
        )

    @property
    def hosts(self) -> Hosts:
        """Whom the reconciler may ask for evidence."""
        return Hosts(self.evidence_hosts, self.evidence_private_hosts)

    @classmethod
    def read(cls) -> Self:
        """Read the environment.

        Raises pydantic's ValidationError for a value that cannot be one.
        """
        return cls()

    @field_validator("oidc_issuer", "oidc_jwks_url")
    @classmethod
    def _check_way(cls, url: str | None) -> str | None:
        if url is not None and not is_private_way(url):
            raise ValueError("it is no https URL (http is for this machine alone)")
        return url

    @field_validator("oidc_audience")
    @classmethod
    def _check_audience(cls, audience: str | None, told: ValidationInfo) -> str | None:
        if (audience is None) != (told.data.get("oidc_issuer") is None):
            raise ValueError("it goes with TALLYSTICK_OIDC_ISSUER, and neither without the other")
        return audience

    @field_validator("evidence_hosts", "evidence_private_hosts", mode="before")
    @classmethod
    def _split(cls, hosts: object) -> object:
        return (
            frozenset(part.strip() for part in hosts.split(",") if part.strip())
            if isinstance(hosts, str)
            else hosts
        )
