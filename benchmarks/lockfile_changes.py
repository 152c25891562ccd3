"""Changes of tools that happen, each as the code before and after, and what it does to agents.

The truth is stated here, by no library: `passes` where callers and readers see the same tool, or
other text alone; `compatible` where every old call goes on as it did; `review` where it goes on,
and may do something else; `breaking` where an old call or a reader of results fails, or may be
begun twice.
"""

from dataclasses import dataclass
from typing import Final, Literal

Truth = Literal["passes", "compatible", "review", "breaking"]

HEAD: Final = """\
import datetime
import decimal
import enum
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from typing_extensions import NotRequired, TypedDict

from tool import tool
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one module.

    Args:
        title: What changes.
        truth: What becomes of deployed agents.
        old: The code that was accepted.
        new: The code that is there now.
        beyond: It is about more than the arguments: results, or what a call may do.
    """

    title: str
    truth: Truth
    old: str
    new: str
    beyond: bool = False


def function(
    parameters: str,
    *,
    before: str = "",
    returns: str = "str",
    doc: str = "Search the orders.",
    stated: str = "",
    keyword: str = "def",
) -> str:
    """Return the code of one tool, with what it needs before it."""
    decorator = f"@tool({stated})" if stated else "@tool"
    return (
        f'{before}\n\n{decorator}\n{keyword} search({parameters}) -> {returns}:\n    """{doc}"""\n'
    )


def model(name: str, *fields: str, base: str = "BaseModel") -> str:
    """Return the code of one class of fields."""
    head = f"@dataclass\nclass {name}:" if base == "dataclass" else f"class {name}({base}):"
    return "\n    ".join([f'{head}\n    """What is looked for."""\n', *fields]) + "\n"


def called(title: str, truth: Truth, old: str, new: str, before: str = "") -> Change:
    """Return a change of parameters."""
    return Change(title, truth, function(old, before=before), function(new, before=before))


def around(title: str, truth: Truth, parameters: str, old: str, new: str) -> Change:
    """Return a change of a type that a parameter has."""
    return Change(title, truth, function(parameters, before=old), function(parameters, before=new))


def returned(title: str, truth: Truth, old: str, new: str, *types: str) -> Change:
    """Return a change of the result, between types or of the types."""
    before, after = types or ("", "")
    old_code = function("query: str", returns=old, before=before)
    new_code = function("query: str", returns=new, before=after)
    return Change(title, truth, old_code, new_code, beyond=True)


def stating(title: str, truth: Truth, old: str, new: str) -> Change:
    """Return a change of what the decorator is told."""
    old_code = function("query: str", stated=old)
    return Change(title, truth, old_code, function("query: str", stated=new), beyond=True)


ARGS: Final = "Search the orders.\n\n    Args:\n        {}: {}\n    "
COLOUR: Final = "class Colour(enum.Enum):\n    {}\n"
ADDRESS: Final = model("Address", "street: str", "city: str")
FILTER: Final = model(
    "Filter",
    'extra: "bool | Filter | None" = None',
    'any: "list[Filter] | None" = None',
    'where: "dict[str, Filter] | None" = None',
    'items: "list[Any] | Filter | None" = None',
    'no: "Filter | None" = None',
    'yes: "Filter | None" = None',
)
TWO: Final = """
class Orders:
    @tool
    def search(self, query: str) -> str:
        \"\"\"Search the orders.\"\"\"


class Customers:
    @tool
    def search(self, name: str, city: str) -> str:
        \"\"\"Search the customers.\"\"\"
"""

# What the peer's own table of changes promises.
PROMISED: Final = (
    called("required parameter renamed", "breaking", "query: str", "search_query: str"),
    called("required parameter removed", "breaking", "query: str, city: str", "query: str"),
    called("required parameter's type changed", "breaking", "query: str", "query: int"),
    called("optional parameter removed", "breaking", "query: str, page: int = 1", "query: str"),
    called("optional parameter made required", "breaking", "page: int = 1", "page: int"),
    called(
        "enum narrowed",
        "breaking",
        'unit: Literal["cm", "in"]',
        'unit: Literal["cm"]',
    ),
    called("optional parameter added", "compatible", "query: str", "query: str, page: int = 1"),
    called("required parameter made optional", "compatible", "query: str", 'query: str = ""'),
    called("enum widened", "compatible", 'unit: Literal["cm"]', 'unit: Literal["cm", "in"]'),
    Change(
        "docstring changed",
        "passes",
        function("query: str"),
        function("query: str", doc="Find an order by its text."),
    ),
    Change(
        "parameter's description changed",
        "passes",
        function("query: str", doc=ARGS.format("query", "What to look for.")),
        function("query: str", doc=ARGS.format("query", "The text.")),
    ),
)

ARGUMENTS: Final = (
    called(
        "optional parameter `description` removed",
        "breaking",
        'query: str, description: str = ""',
        "query: str",
    ),
    called(
        "parameter `description` of another type",
        "breaking",
        "description: str",
        "description: int",
    ),
    around(
        "model: field renamed",
        "breaking",
        "to: Address",
        ADDRESS,
        ADDRESS.replace("street", "road"),
    ),
    around(
        "model: required field added",
        "breaking",
        "to: Address",
        ADDRESS,
        ADDRESS + "    zip: str\n",
    ),
    around(
        "model: optional field added",
        "compatible",
        "to: Address",
        ADDRESS,
        ADDRESS + "    zip: str | None = None\n",
    ),
    around(
        "model: field's default changed",
        "review",
        "to: Address",
        ADDRESS + '    country: str = "AT"\n',
        ADDRESS + '    country: str = "DE"\n',
    ),
    around(
        "nested model: field's type changed",
        "breaking",
        "order: Order",
        ADDRESS + model("Order", "to: Address"),
        ADDRESS.replace("city: str", "city: int") + model("Order", "to: Address"),
    ),
    around(
        "list of closed models: field removed",
        "breaking",
        "items: list[Item]",
        'class Item(BaseModel, extra="forbid"):\n    name: str\n    count: int = 1\n',
        'class Item(BaseModel, extra="forbid"):\n    name: str\n',
    ),
    around(
        "TypedDict: key made required",
        "breaking",
        "to: Place",
        model("Place", "street: str", "zip: NotRequired[str]", base="TypedDict"),
        model("Place", "street: str", "zip: str", base="TypedDict"),
    ),
    around(
        "dataclass: required field added",
        "breaking",
        "to: Place",
        model("Place", "street: str", base="dataclass"),
        model("Place", "street: str", "zip: str", base="dataclass"),
    ),
    called(
        "discriminated union: branch removed",
        "breaking",
        'by: Annotated[Card | Cash, Field(discriminator="kind")]',
        "by: Card",
        before=model("Card", 'kind: Literal["card"]', "number: str")
        + model("Cash", 'kind: Literal["cash"]'),
    ),
    called("str made Literal", "breaking", "unit: str", 'unit: Literal["cm", "in"]'),
    called("Literal made str", "compatible", 'unit: Literal["cm", "in"]', "unit: str"),
    called(
        "optional parameter's type narrowed",
        "breaking",
        'city: str | int = "x"',
        'city: str = "x"',
    ),
    called("optional parameter's type changed", "breaking", 'zip: str = "1010"', "zip: int = 1010"),
    called("parameter may no longer be null", "breaking", "city: str | None", "city: str"),
    called("parameter may be null now", "compatible", "city: str", "city: str | None"),
    called("int made float", "compatible", "amount: int", "amount: float"),
    called("float made int", "breaking", "amount: float", "amount: int"),
    called("default changed", "review", "limit: int = 10", "limit: int = 1000"),
    called("default True made 1", "review", "limit: int | bool = True", "limit: int | bool = 1"),
    called(
        "upper bound lowered",
        "breaking",
        "page: Annotated[int, Field(le=100)]",
        "page: Annotated[int, Field(le=50)]",
    ),
    called(
        "upper bound raised",
        "compatible",
        "page: Annotated[int, Field(le=100)]",
        "page: Annotated[int, Field(le=500)]",
    ),
    called(
        "Decimal: lower bound raised",
        "breaking",
        "price: Annotated[decimal.Decimal, Field(ge=0)]",
        "price: Annotated[decimal.Decimal, Field(ge=1)]",
    ),
    called(
        "Decimal: fewer digits",
        "breaking",
        "price: Annotated[decimal.Decimal, Field(max_digits=8, decimal_places=2)]",
        "price: Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)]",
    ),
    called(
        "pattern added",
        "breaking",
        "zip: str",
        'zip: Annotated[str, Field(pattern="^[0-9]{4}$")]',
    ),
    around(
        "enum class: value changed",
        "breaking",
        "colour: Colour",
        COLOUR.format('RED = "red"'),
        COLOUR.format('RED = "crimson"'),
    ),
    around(
        "enum class: member renamed, value kept",
        "passes",
        "colour: Colour",
        COLOUR.format('RED = "red"'),
        COLOUR.format('CRIMSON = "red"'),
    ),
    called("values of a mapping", "breaking", "seats: dict[str, int]", "seats: dict[str, str]"),
    called("items of a list", "breaking", "ids: list[int]", "ids: list[str]"),
    called("UUID made str", "compatible", "id: uuid.UUID", "id: str"),
    called("str made UUID", "breaking", "id: str", "id: uuid.UUID"),
    called("datetime made date", "breaking", "at: datetime.datetime", "at: datetime.date"),
    called("free keywords removed", "breaking", "query: str, **more: str", "query: str"),
    called(
        "made keyword-only", "passes", "query: str, page: int = 1", "*, query: str, page: int = 1"
    ),
    called(
        "parameters in another order", "passes", "query: str, city: str", "city: str, query: str"
    ),
    Change(
        "made async", "passes", function("query: str"), function("query: str", keyword="async def")
    ),
    Change(
        "recursive model: parameter's description changed",
        "passes",
        function("filter: Filter", before=FILTER),
        function("filter: Filter", before=FILTER, doc=ARGS.format("filter", "Which.")),
    ),
    Change("two tools of one short name, as they were", "passes", TWO, TWO),
    Change("tool removed", "breaking", function("query: str"), ""),
)

BEYOND: Final = (
    returned("result: type changed", "breaking", "str", "int"),
    returned("result: may be null now", "breaking", "str", "str | None"),
    returned("result: no longer null", "compatible", "str | None", "str"),
    returned(
        "result: field removed",
        "breaking",
        "Address",
        "Address",
        ADDRESS,
        model("Address", "street: str"),
    ),
    stating("effect class: pure made unsafe", "breaking", 'effect_class="PURE"', "name=None"),
    stating(
        "wider capabilities",
        "review",
        'capabilities=["orders:read:eu"]',
        'capabilities=["orders:read:eu", "orders:write:eu"]',
    ),
)

CHANGES: Final = (*PROMISED, *ARGUMENTS, *BEYOND)
