"""A tool contract: one immutable version of one tool, and the tuple that names it.

The document is the contract: digests are taken of the fields that it has, as they are, and what is
absent stays absent. `Contract` reads it once, refuses what is wrong with it, and gives the fields
types and defaults.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, Literal, cast

from tallystick.canonical import Json, MalformedJson, digest
from tallystick.contract_rules import checked, contract_schema, dialect_of
from tallystick.document import DOCUMENT_BYTES_MAX, parse_document
from tallystick.effect_class import TRAITS, EffectClass, EffectTraits
from tallystick.errors import InvalidContract, InvalidRequest
from tallystick.identifiers import Ownership, Returned
from tallystick.provider import (
    Bind,
    ErrorMeaning,
    Evidence,
    EvidenceAnswer,
    HttpEvidence,
    Idempotency,
)
from tallystick.schema import Validator, structure
from tallystick.subschema import Subschemas

__all__ = [
    "TRAITS",
    "Bind",
    "Contract",
    "EffectClass",
    "EffectTraits",
    "ErrorMeaning",
    "Evidence",
    "EvidenceAnswer",
    "HttpEvidence",
    "Idempotency",
    "Ownership",
    "Returned",
    "ToolReference",
    "Version",
    "contract_schema",
]

TENANT: Final = "{tenant}"
DIGEST_PATTERN: Final = "^sha256:[0-9a-f]{64}$"

_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})(?:\.(0|[1-9][0-9]{0,8}))?")
_FORMATS: Final[Mapping[str, Literal["json", "yaml"]]] = {
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
}
_PROMPT_KEYWORDS: Final = ("title", "description", "examples")
_ATTEMPTS_MAX: Final = 3


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A contract version; `1.0` and `1.0.0` are the same one."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> "Version":
        """Read `major.minor` or `major.minor.patch`.

        Raises:
            InvalidContract: The text has another form.
        """
        found = _VERSION.fullmatch(text)
        if found is None:
            raise InvalidContract("a version is written 1.0 or 1.0.0", pointer="/version")
        return cls(*(int(part or 0) for part in found.groups()))

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


@dataclass(frozen=True, slots=True)
class ToolReference:
    """What a runtime presents: exactly this tool, in exactly this form, with no more than this.

    Args:
        name: The tool's name.
        version: Its version, in three parts.
        schema_hash: The full hash of its schemas, `sha256:` and 64 hexadecimal digits.
        capabilities: What the call may touch, as `resource:action:scope`.
        effect_class: Its effect class.
        credential_version: The version of the credential that was attested; 0 if there is none.
    """

    name: str
    version: str
    schema_hash: str
    capabilities: frozenset[str]
    effect_class: EffectClass
    credential_version: int

    def to_json(self) -> dict[str, Json]:
        """Return the tuple as a JSON object, capabilities in order."""
        return {
            "name": self.name,
            "version": self.version,
            "schema_hash": self.schema_hash,
            "capabilities": [*sorted(self.capabilities)],
            "effect_class": self.effect_class.value,
            "credential_version": self.credential_version,
        }

    @classmethod
    def from_json(cls, value: Json) -> "ToolReference":
        """Read the tuple.

        Raises:
            InvalidRequest: It has another form, with the pointer to the first fault.
        """
        for violation in _reference_validator().violations(value):
            raise InvalidRequest(f"tool reference: {violation.message}", pointer=violation.pointer)
        fields = cast("dict[str, Any]", value)
        return cls(
            name=fields["name"],
            version=str(Version.parse(fields["version"])),
            schema_hash=fields["schema_hash"],
            capabilities=frozenset(fields["capabilities"]),
            effect_class=EffectClass(fields["effect_class"]),
            credential_version=fields["credential_version"],
        )


@dataclass(frozen=True, eq=False)
class Contract:
    """One version of one tool. Built by `parse`, `load` or `of`, which refuse a wrong document.

    Equal documents make equal contracts. The fields are those of the document, with defaults where
    it is silent; `contract.schema.json` says what each means.
    """

    document: Mapping[str, Json]
    name: str
    version: Version
    title: str | None
    description: str
    input_schema: dict[str, Json]
    output_schema: dict[str, Json] | None
    capabilities: frozenset[str]
    effect_class: EffectClass
    credential: str | None
    idempotency: Idempotency | None
    evidence: Evidence | None
    identity_fields: tuple[str, ...] | None
    errors: tuple[ErrorMeaning, ...]
    approval: Literal["never", "policy", "always"]
    ownership: tuple[Ownership, ...]
    returned: tuple[Returned, ...]
    lease_seconds: float
    settle_seconds: float
    attempts_max: int
    max_duplicates: int
    result_limit: int
    dialect: str
    assert_format: bool

    @classmethod
    def parse(cls, document: Json) -> "Contract":
        """Read a contract document.

        Raises:
            InvalidContract: It breaks a rule, with the JSON Pointer of the offending place.
            TooLarge: It, or one of its schemas, exceeds its size limit.
        """
        fields = checked(document)
        version = Version.parse(fields["version"])
        effect_class = EffectClass(fields["effect_class"])
        idempotency, evidence = fields.get("idempotency"), fields.get("evidence")
        identity_fields = fields.get("identity_fields")
        once = not TRAITS[effect_class].automatic_retry
        return cls(
            document={**fields, "version": str(version)},
            name=fields["name"],
            version=version,
            title=fields.get("title"),
            description=fields["description"],
            input_schema=fields["input_schema"],
            output_schema=fields.get("output_schema"),
            capabilities=frozenset(fields["capabilities"]),
            effect_class=effect_class,
            credential=fields.get("credential"),
            idempotency=Idempotency.of(idempotency) if idempotency else None,
            evidence=Evidence.of(evidence) if evidence else None,
            identity_fields=None if identity_fields is None else tuple(identity_fields),
            errors=tuple(ErrorMeaning.of(each) for each in fields.get("errors", ())),
            approval=fields.get("approval", "never"),
            ownership=tuple(Ownership.of(each) for each in fields.get("ownership", ())),
            returned=tuple(Returned.of(each) for each in fields.get("returned", ())),
            lease_seconds=fields.get("lease_seconds", 60),
            settle_seconds=fields.get("settle_seconds", 60),
            attempts_max=fields.get("attempts_max", 1 if once else _ATTEMPTS_MAX),
            max_duplicates=fields.get("max_duplicates", 0),
            result_limit=fields.get("result_limit", 4000),
            dialect=dialect_of(fields),
            assert_format=fields.get("assert_format", False),
        )

    @classmethod
    def load(cls, path: str | Path) -> "Contract":
        """Read a contract file, JSON or YAML by its suffix.

        Raises:
            InvalidContract: As `parse`, and if the file is not one document of its format.
            TooLarge: As `parse`.
            OSError: The file cannot be read.
        """
        path = Path(path)
        written = _FORMATS.get(path.suffix.lower())
        if written is None:
            raise InvalidContract(f"{path.name}: a contract file ends in .json, .yaml or .yml")
        try:
            return cls.parse(parse_document(_read(path), format=written))
        except MalformedJson as error:
            raise InvalidContract(error.detail, pointer=error.pointer) from None

    @classmethod
    def of(cls, *, name: str, version: str, **fields: object) -> "Contract":
        """Make a contract of the document's fields as arguments; None stands for an absent field.

        Raises:
            InvalidContract: As `parse`.
            TooLarge: As `parse`.
        """
        given = {"name": name, "version": version, **fields}
        present = {key: value for key, value in given.items() if value is not None}
        return cls.parse(cast("Json", present))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Contract):
            return NotImplemented
        return self.contract_digest == other.contract_digest

    def __hash__(self) -> int:
        return hash(self.contract_digest)

    @property
    def kind(self) -> Literal["read", "write"]:
        """Whether a call only reads."""
        return TRAITS[self.effect_class].kind

    @cached_property
    def schema_hash(self) -> str:
        """The digest of the schemas' structure: what has to match for a call to run."""
        schemas: dict[str, Json] = {"input": structure(self.input_schema)}
        if self.output_schema is not None:
            schemas["output"] = structure(self.output_schema)
        return digest(schemas)

    @cached_property
    def prompt_hash(self) -> str:
        """The digest of what a model reads: a change is no drift, but one to review."""
        texts: dict[str, Json] = _prompt_texts(self.document)
        for field in ("input_schema", "output_schema"):
            for position in Subschemas(self.document.get(field)):
                found = _prompt_texts(position.keywords)
                if found:
                    texts[f"/{field}{position.pointer}"] = found
        return digest(texts)

    @cached_property
    def contract_digest(self) -> str:
        """The digest of the whole document, its version in three parts."""
        return digest(dict(self.document))

    def capabilities_for(self, tenant: str) -> frozenset[str]:
        """Return the capabilities with the tenant's slug put in."""
        return frozenset(each.replace(TENANT, tenant) for each in self.capabilities)

    def reference(
        self,
        *,
        credential_version: int,
        tenant: str | None = None,
        capabilities: Iterable[str] | None = None,
    ) -> ToolReference:
        """Return the tuple to present.

        Args:
            credential_version: The attested version of the credential; 0 if there is none.
            tenant: The slug to put into the declared capabilities.
            capabilities: A narrower set; without it, all that are declared.
        """
        declared = self.capabilities if tenant is None else self.capabilities_for(tenant)
        return ToolReference(
            name=self.name,
            version=str(self.version),
            schema_hash=self.schema_hash,
            capabilities=declared if capabilities is None else frozenset(capabilities),
            effect_class=self.effect_class,
            credential_version=credential_version,
        )


def _prompt_texts(fields: Mapping[str, Json]) -> dict[str, Json]:
    return {key: fields[key] for key in _PROMPT_KEYWORDS if key in fields}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        # One byte more than allowed is enough to know, however large the file is.
        content = file.read(DOCUMENT_BYTES_MAX + 1)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedJson(f"byte {error.start} is not UTF-8") from None


@cache
def _reference_validator() -> Validator:
    fields = cast("dict[str, Any]", contract_schema()["properties"])
    return Validator.of(
        {
            "type": "object",
            "additionalProperties": False,
            "required": list(ToolReference.__slots__),
            "properties": {
                "name": fields["name"],
                "version": fields["version"],
                "schema_hash": {"type": "string", "pattern": DIGEST_PATTERN},
                "capabilities": fields["capabilities"],
                "effect_class": fields["effect_class"],
                "credential_version": {"type": "integer", "minimum": 0},
            },
        }
    )
