"""What the workers and operators of a schedule are told: where everything is, and who they are."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from tallystick import ToolReference

References = dict[str, dict[str, list[ToolReference]]]
"""By tenant and tool, one for each version."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the servers and the provider are, who may ask them for what, and from when on.

    ``tokens`` are those of the workers by tenant, ``operators`` those of two people of one tenant,
    and times are those of the machine's monotonic clock.
    """

    urls: list[str]
    provider_url: str
    tokens: dict[str, str]
    operators: list[str]
    references: References
    began_at: float
    retires_at: float

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self) | {"references": self._written()}))

    @classmethod
    def load(cls, path: Path) -> Self:
        told = json.loads(path.read_text())
        read = ToolReference.from_json
        references = {
            tenant: {tool: [read(one) for one in versions] for tool, versions in tools.items()}
            for tenant, tools in told["references"].items()
        }
        return cls(**(told | {"references": references}))

    def _written(self) -> object:
        return {
            tenant: {tool: [one.to_json() for one in versions] for tool, versions in tools.items()}
            for tenant, tools in self.references.items()
        }
