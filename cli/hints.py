"""What a person can do about a refusal, where there is one thing to do."""

from collections.abc import Mapping
from typing import Final

HINTS: Final[Mapping[str, str]] = {
    "capability_not_granted": "`registry grants add PRINCIPAL CAPABILITY` grants one.",
    "contract_in_use": "`registry retire NAME@VERSION --wait` waits until nothing refers to it.",
    "contract_migrating": "`registry rollback NAME@VERSION` reopens a version that is not retired.",
    "credential_policy_changed": "After a rotation, `registry attest NAME@VERSION --reason TEXT` "
    "binds the contract to the credential's current version.",
    "effect_class_mismatch": "`registry show NAME@VERSION` shows what is published.",
    "forbidden": "`registry whoami` shows the roles of your token.",
    "illegal_transition": "`registry effects show EFFECT_ID` and `registry show NAME@VERSION` "
    "show the present state.",
    "not_found": "`registry effects list --all` shows the effects.",
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
