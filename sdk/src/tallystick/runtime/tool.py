"""The tools of a runtime: each a contract with the function that does the work."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tallystick.canonical import Json, MalformedJson, check_json
from tallystick.catalog import Catalog
from tallystick.effect_class import EffectClass
from tallystick.errors import InvalidRequest, NameTaken, SignatureUnsupported, ToolNotDeclared
from tallystick.gates.arguments import closed_arguments, closed_validator
from tallystick.identifiers import Ownership
from tallystick.policy import Policy, Risk
from tallystick.runtime.script import is_asynchronous
from tallystick.schema import Validator, has_sensitive, redact
from tallystick.signatures.binding import Binding, binding_of
from tallystick.signatures.document import document_of
from tallystick.signatures.terms import Terms
from tallystick.tool_contract import Contract
from tallystick.tool_list import function_tool, shown_names

Function = Callable[..., Any]

_DERIVED_VERSION: Final = "1.0.0"


@dataclass(frozen=True, eq=False)
class Tool:
    """One tool.

    Args:
        contract: What every call of it is held to.
        function: What does the work.
        binding: How the function is given its arguments; None where it takes them as they are.
        results: What judges its results; None if the contract does not describe them.
        is_asynchronous: Whether a call of it can only be awaited.
        hides_arguments: Whether its contract marks arguments as sensitive.
        hides_results: Whether its contract marks results so.
    """

    contract: Contract
    function: Function
    binding: Binding | None
    results: Validator | None
    is_asynchronous: bool
    hides_arguments: bool
    hides_results: bool

    @classmethod
    def of(cls, contract: Contract, function: Function, injected: Iterable[str]) -> "Tool":
        """Join a contract and a function."""
        closed_validator(contract)  # compiled now, not at the first call
        output = contract.output_schema
        return cls(
            contract=contract,
            function=function,
            binding=_binding(contract, function, tuple(injected)),
            results=None
            if output is None
            else Validator.of(output, contract.dialect, contract.assert_format),
            is_asynchronous=is_asynchronous(function),
            hides_arguments=has_sensitive(contract.input_schema),
            hides_results=output is not None and has_sensitive(output),
        )

    def shown_arguments(self, arguments: Json) -> Json:
        """Return arguments without what the contract marks as sensitive."""
        return redact(arguments, self.contract.input_schema) if self.hides_arguments else arguments

    def shown_result(self, result: Json) -> Json:
        """Return a result without what the contract marks as sensitive."""
        output = self.contract.output_schema
        return redact(result, output) if self.hides_results and output is not None else result


class Toolbox:
    """The tools of a runtime and its sibling runs, found by name or by the name a model is shown.

    Args:
        catalog: Where the contract of a tool is looked up by name.
        policy: What says whether a tool without a contract only reads.
        resolution: The contract of the call that ends a run.
    """

    def __init__(
        self, catalog: Catalog | None, policy: Policy | None, resolution: Contract | None
    ) -> None:
        self._catalog = catalog
        self._policy = policy
        self._resolution = resolution
        self._tools: dict[str, Tool] = {}
        self._shown: dict[str, str] = {}
        self._by_shown: dict[str, Tool] = {}
        self._ownerships: dict[str, tuple[Ownership, ...]] = {}
        self._returners: set[str] = set()
        self._awaited: set[str] = set()
        self._every_tool_returns = False
        if resolution is not None:
            self._expect(resolution)
        self._show()

    def __iter__(self) -> Iterator[Tool]:
        return (self._tools[name] for name in sorted(self._tools))

    def named(self, name: str) -> Tool | None:
        """Return the tool with this name, or shown under it, or None."""
        return self._tools.get(name) or self._by_shown.get(name)

    def ends_a_run(self, name: str) -> bool:
        """Tell whether a model means the call that ends the run, by its name or its shown one."""
        if self._resolution is None:
            return False
        return name in (self._resolution.name, self._shown[self._resolution.name])

    def is_awaited(self, tool: Tool) -> bool:
        """Tell whether a call can only be awaited: its tool, or one that says who owns what."""
        return tool.contract.name in self._awaited

    def ownerships(self, tool: str) -> tuple[Ownership, ...]:
        """Return the declarations of any contract that ask this tool who owns an object."""
        return self._ownerships.get(tool, ())

    def must_return(self, tool: str) -> bool:
        """Tell whether a contract wants identifiers to have been returned by this tool, or any."""
        return self._every_tool_returns or tool in self._returners

    def add(
        self,
        name: str | None,
        function: Function,
        contract: Contract | None,
        injected: tuple[str, ...],
    ) -> Tool:
        """Add a tool; see `PolicyRuntime.tool`."""
        if not callable(function) or inspect.isclass(function):
            raise SignatureUnsupported("a tool of a runtime is a function: give the one that works")
        found = contract or self._contract(name, function, injected)
        if name not in (None, found.name):
            raise InvalidRequest(f"the contract is {found.name}'s, and the tool is named {name}")
        if found.name in self._tools or self.ends_a_run(found.name):
            raise NameTaken(f"{found.name} is a tool of this runtime already")
        self._expect(found)
        self._tools[found.name] = tool = Tool.of(found, function, injected)
        asynchronous = {each.contract.name for each in self if each.is_asynchronous}
        self._awaited = asynchronous.union(
            each.contract.name
            for each in self
            if any(one.tool in asynchronous for one in each.contract.ownership)
        )
        self._show()
        return tool

    def _expect(self, contract: Contract) -> None:
        """Remember what a contract will ask of other tools' results."""
        for source in contract.returned:
            self._returners.update(source.tools or ())
            self._every_tool_returns = self._every_tool_returns or source.tools is None
        for each in contract.ownership:
            if each.tool is not None and each not in self.ownerships(each.tool):
                self._ownerships[each.tool] = (*self.ownerships(each.tool), each)

    def shown(self, kinds: Iterable[str]) -> list[dict[str, Json]]:
        """Return the tool list for a model: by name, of these kinds, and what ends the run last."""
        offered = [tool.contract for tool in self if tool.contract.kind in kinds]
        if self._resolution is not None:
            offered.append(self._resolution)
        return [
            function_tool(self._shown[each.name], each.description, closed_arguments(each))
            for each in offered
        ]

    def _show(self) -> None:
        last = [] if self._resolution is None else [self._resolution.name]
        self._shown = shown_names([*self._tools, *last])
        self._by_shown = {self._shown[each]: tool for each, tool in self._tools.items()}

    def _contract(
        self, name: str | None, function: Function, injected: tuple[str, ...]
    ) -> Contract:
        versions = [each for each in self._catalog or () if each.name == name]
        if self._catalog is not None and versions:
            newest = max(versions, key=lambda each: each.version)
            reference = self._catalog.reference(newest.name, str(newest.version))
            return self._catalog.resolve(reference)
        from tallystick.declaring import contract_of

        try:
            return contract_of(function)
        except ToolNotDeclared:
            return self._derived(name or str(getattr(function, "__name__", "")), function, injected)

    def _derived(self, name: str, function: Function, injected: tuple[str, ...]) -> Contract:
        risk = None if self._policy is None else self._policy.risk_of(name)
        is_described = bool((getattr(function, "__doc__", None) or "").strip())
        terms = Terms(
            name=name,
            version=_DERIVED_VERSION,
            effect_class=EffectClass.PURE if risk is Risk.READ else EffectClass.UNKNOWN,
            injected=injected,
            fields={} if is_described else {"description": f"{name.replace('_', ' ')}."},
        )
        return Contract.parse(document_of(function, terms))


def _binding(contract: Contract, function: Function, injected: tuple[str, ...]) -> Binding | None:
    try:
        return binding_of(function, injected, contract.name)
    except SignatureUnsupported:
        # Nothing that is written in Python, or nothing that takes its arguments by name.
        return None


def as_json(result: object) -> Json:
    """Return a tool's result as strict JSON, in the form that Pydantic gives it.

    Raises:
        MalformedJson: It has none.
    """
    try:
        return check_json(result)
    except MalformedJson:
        from pydantic_core import PydanticSerializationError, to_jsonable_python

        try:
            return check_json(to_jsonable_python(result))
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            if isinstance(error, MalformedJson):
                raise
            raise MalformedJson("the result has no JSON form") from None


def injected_into(tool: Tool, values: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of a tool's function that no caller gives.

    Raises:
        InvalidRequest: The runtime has no value for one that the function needs.
    """
    if tool.binding is None or not tool.binding.injected:
        return {}
    missing = sorted(tool.binding.needed - values.keys())
    if missing:
        raise InvalidRequest(f"{tool.contract.name} needs injected={{'{missing[0]}': ...}}")
    return {name: values[name] for name in tool.binding.injected if name in values}
