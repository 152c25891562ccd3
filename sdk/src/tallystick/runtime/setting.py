"""What an application says of a run: on whose behalf, with which rights, and whom to ask."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

from tallystick.canonical import Json
from tallystick.catalog import Catalog
from tallystick.errors import InvalidRequest
from tallystick.identifiers import Identifier
from tallystick.runtime.proposal import Approval, ApprovalRequest
from tallystick.tool_contract import Contract

if TYPE_CHECKING:
    from tallystick.client import AsyncClient, Client

OwnerOf: TypeAlias = Callable[[str, Identifier], "Json | Awaitable[Json]"]
Approve: TypeAlias = Callable[[ApprovalRequest], "bool | Approval | Awaitable[bool | Approval]"]
Proposed: TypeAlias = Iterable[tuple[str, Mapping[str, Any]]]
Proposals: TypeAlias = Callable[[dict[str, Any]], "Proposed | Awaitable[Proposed]"]


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.fromtimestamp(time(), UTC)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What `PolicyRuntime` is given beside the policy, and explains."""

    contracts: Catalog | Iterable[Contract] | None = None
    subject: Mapping[str, Json] = field(default_factory=dict[str, Json])
    principal: str = ""
    tenant: str = "default"
    granted: Iterable[str] | None = None
    owner_of: OwnerOf | None = None
    approve: Approve | None = None
    resolution: Contract | None = None
    proposals: Proposals | None = None
    writes: Literal["run", "propose"] = "run"
    injected: Mapping[str, object] = field(default_factory=dict[str, object])
    trace: str | Path | None = None
    clock: Callable[[], datetime] = utc_now
    client: "Client | AsyncClient | None" = None
    run: str | None = None

    def __post_init__(self) -> None:
        if (self.client is None) != (self.run is None):
            raise InvalidRequest("client and run are given together")
        if self.client is not None and (
            self.approve or self.proposals or self.resolution or self.writes != "run"
        ):
            raise InvalidRequest(
                "approve, resolution, proposals and writes are of a runtime without a client: "
                "people give their word to the service"
            )
        if self.writes not in _WRITES:
            raise InvalidRequest(f"writes is {self.writes!r}, and must be 'run' or 'propose'")


_WRITES: Final = ("run", "propose")


class Options(TypedDict, total=False):
    """The keywords of `PolicyRuntime`, which explains them."""

    contracts: Catalog | Iterable[Contract] | None
    subject: Mapping[str, Json]
    principal: str
    tenant: str
    granted: Iterable[str] | None
    owner_of: OwnerOf | None
    approve: Approve | None
    resolution: Contract | None
    proposals: Proposals | None
    writes: Literal["run", "propose"]
    injected: Mapping[str, object]
    trace: str | Path | None
    clock: Callable[[], datetime]
    client: "Client | AsyncClient | None"
    run: str | None
