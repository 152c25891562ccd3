"""What is no schema of its dialect is never compared, by Apicurio's cases of validity."""

import json
from typing import Any

import pytest

from tallystick.compatibility.comparison import compare
from tallystick.errors import InvalidContract
from tests.conformance.compatibility.suites import CORPUS, DIALECTS

FILE = CORPUS / "Apicurio-apicurio-registry" / "validity-test-data.json"
CASES: list[dict[str, Any]] = json.loads(FILE.read_bytes())["tests"] if FILE.exists() else []
DRAFTS = {"draft-2020": "2020-12"}

# The metaschema of 2020-12 wants a name of one character or more, and that of draft-04 a minimum
# beside an exclusive one.
DISPUTED = {
    ("draft-2020", '{"$dynamicAnchor": ""}'),
    ("draft-04", '{"exclusiveMinimum": true}'),
}

pytestmark = pytest.mark.skipif(not CASES, reason=f"the cases are not in {FILE}")


@pytest.mark.parametrize("draft", ["draft-04", "draft-06", "draft-07", "draft-2020"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["description"][:40])
def test_only_schemas_of_the_dialect_are_compared(case: dict[str, Any], draft: str):
    schema, dialect = case["schema"], DIALECTS[DRAFTS.get(draft, draft)]
    is_disputed = (draft, json.dumps(schema)) in DISPUTED

    if case["expected"][draft] and not is_disputed:
        assert compare(schema, schema, dialect=dialect).verdict == "compatible"
    else:
        with pytest.raises(InvalidContract, match="not valid JSON Schema"):
            compare(schema, schema, dialect=dialect)
