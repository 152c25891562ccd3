"""What a person can do about a refusal, where there is one thing to do."""

from collections.abc import Mapping
from typing import Final

HINTS: Final[Mapping[str, str]] = {
    "approval_expired": "`registry approvals show APPROVAL_ID` shows when it ran out; what is "
    "still wanted is another effect.",
    "approval_rejected": "`registry approvals show APPROVAL_ID` shows who refused it, and why.",
    "approval_stale": "`registry approvals show APPROVAL_ID` shows what it was given for.",
    "budget_exhausted": "`registry policy show` shows the budgets, and `registry runs show RUN` "
    "what was spent.",
    "capability_not_granted": "`registry grants add PRINCIPAL CAPABILITY` grants one.",
    "contract_in_use": "`registry retire NAME@VERSION --wait` waits until nothing refers to it.",
    "contract_migrating": "`registry rollback NAME@VERSION` reopens a version that is not retired.",
    "credential_policy_changed": "After a rotation, `registry attest NAME@VERSION --reason TEXT` "
    "binds the contract to the credential's current version.",
    "effect_class_mismatch": "`registry show NAME@VERSION` shows what is published.",
    "effect_not_retryable": "`registry quarantine show EFFECT_ID` shows what may be decided.",
    "forbidden": "`registry whoami` shows who you are, and your roles.",
    "illegal_transition": "`registry effects show EFFECT_ID`, `registry approvals show "
    "APPROVAL_ID` and `registry show NAME@VERSION` show the present state.",
    "invalid_policy": "`registry policy lint FILE` finds every fault before anything is published.",
    "needs_human": "`registry approvals list` shows what waits, and `registry approvals approve "
    "APPROVAL_ID` lets it run.",
    "not_found": "`registry effects list --all`, `registry approvals list --all` and `registry "
    "policy list` show what there is.",
    "policy_blocked": "`registry policy show` shows the rules, and `registry runs show RUN` which "
    "one refused.",
    "registry_unavailable": "`registry serve` starts a server; TALLYSTICK_URL says where one is, "
    "and DATABASE_URL where its database is.",
    "review_required": "Publish it with `--reviewer NAME --reason TEXT`.",
    "signature_required": "`registry sign NAME@VERSION --key FILE` signs a version, and `registry "
    "publish --sign-with FILE` a new one.",
    "token_conflict": "`registry tokens list` shows the tokens in force.",
    "tool_contract_not_found": "`registry list` shows what is published.",
    "tool_schema_drift": "`registry show NAME@VERSION` shows the published schema hash.",
    "unauthenticated": "Set TALLYSTICK_TOKEN, or TALLYSTICK_HOME where the server's data is on "
    "this machine.",
}
