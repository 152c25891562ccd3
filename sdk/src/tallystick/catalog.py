"""Contracts in one process, without a service: the same tuples, the same refusals."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tallystick.errors import (
    ContractExists,
    InvalidContract,
    SignatureInvalid,
    ToolContractNotFound,
)
from tallystick.resolution import Lifecycle, Purpose, Standing, check
from tallystick.signing import PublicKey
from tallystick.tool_contract import Contract, ToolReference, Version

_SUFFIXES = (".json", ".yaml", ".yml")


class Catalog:
    """A fixed set of contracts that resolves tuples as the registry does.

    Args:
        contracts: The contracts; every version is ACTIVE.
        tenant: The slug that stands for `{tenant}` in capabilities.
        granted: The capabilities that the process holds; all that are declared, if None.
        credential_versions: The current version of each credential slot; 1 for those not named.
        keys: The public keys that are trusted, in hexadecimal digits. If they are given, a contract
            resolves with a signature by one of them alone; this takes `tallystick[signing]`.
        signatures: The signatures of each contract by its digest, in hexadecimal digits.

    Raises:
        ContractExists: Two contracts have the same name and version and are not equal.
        InvalidRequest: A key is not a public key.
        SignatureInvalid: A signature is not written as one.
    """

    def __init__(
        self,
        contracts: Iterable[Contract],
        *,
        tenant: str = "default",
        granted: Iterable[str] | None = None,
        credential_versions: Mapping[str, int] | None = None,
        keys: Iterable[str] | None = None,
        signatures: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self._tenant = tenant
        self._granted = None if granted is None else frozenset(granted)
        self._credential_versions = dict(credential_versions or {})
        self._keys = None if keys is None else [PublicKey.parse(key) for key in keys]
        self._signatures = {
            digest: [_signature(each) for each in found]
            for digest, found in (signatures or {}).items()
        }
        self._contracts: dict[tuple[str, str], Contract] = {}
        for contract in contracts:
            key = contract.name, str(contract.version)
            known = self._contracts.setdefault(key, contract)
            if known != contract:
                raise ContractExists(f"{contract.name} {contract.version} is there twice")

    @classmethod
    def load(
        cls,
        paths: str | Path | Iterable[str | Path],
        *,
        tenant: str = "default",
        granted: Iterable[str] | None = None,
        credential_versions: Mapping[str, int] | None = None,
        keys: Iterable[str] | None = None,
        signatures: Mapping[str, Iterable[str]] | None = None,
    ) -> "Catalog":
        """Read contract files; of a folder, all that it holds, at any depth.

        Raises:
            InvalidContract: A file is not a contract; the detail names it.
            ContractExists: As the class.
        """
        given = [paths] if isinstance(paths, str | Path) else paths
        contracts = [_load(file) for path in given for file in _files(Path(path))]
        return cls(
            contracts,
            tenant=tenant,
            granted=granted,
            credential_versions=credential_versions,
            keys=keys,
            signatures=signatures,
        )

    def __iter__(self) -> Iterator[Contract]:
        return iter(self._contracts.values())

    def reference(self, name: str, version: str) -> ToolReference:
        """Return the tuple that this process presents for a contract.

        Raises:
            ToolContractNotFound: There is no such contract here.
            InvalidContract: The version is not written as one.
        """
        contract = self._contracts.get((name, str(Version.parse(version))))
        if contract is None:
            raise ToolContractNotFound(f"there is no contract {name} {version}")
        return contract.reference(
            credential_version=self._credential_version(contract), tenant=self._tenant
        )

    def resolve(self, reference: ToolReference) -> Contract:
        """Return the contract that a tuple names.

        Raises:
            Refusal: As `tallystick.resolution.check`, with the same codes.
        """
        contract = self._contracts.get((reference.name, reference.version))
        standing = None if contract is None else self._standing(contract)
        granted = self._granted
        if granted is None:
            granted = frozenset[str]() if standing is None else standing.capabilities
        check(reference, standing, granted, Purpose.PLAN)
        assert contract is not None, "check refuses a tuple without a contract"
        return contract

    def _standing(self, contract: Contract) -> Standing:
        credential_version = self._credential_version(contract)
        return Standing(
            schema_hash=contract.schema_hash,
            capabilities=contract.capabilities_for(self._tenant),
            effect_class=contract.effect_class,
            lifecycle=Lifecycle.ACTIVE,
            suspended=False,
            signature_missing=not self._is_trusted(contract),
            credential_bound=credential_version,
            credential_current=credential_version,
        )

    def _is_trusted(self, contract: Contract) -> bool:
        digest = contract.contract_digest
        signatures = self._signatures.get(digest, ())
        return self._keys is None or any(
            key.verifies(digest, each) for key in self._keys for each in signatures
        )

    def _credential_version(self, contract: Contract) -> int:
        if contract.credential is None:
            return 0
        return self._credential_versions.get(contract.credential, 1)


def _signature(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise SignatureInvalid("A signature is written in hexadecimal digits.") from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(each for each in path.rglob("*") if each.suffix.lower() in _SUFFIXES)


def _load(path: Path) -> Contract:
    try:
        return Contract.load(path)
    except InvalidContract as error:
        raise InvalidContract(f"{path}: {error.detail}", pointer=error.pointer) from None
