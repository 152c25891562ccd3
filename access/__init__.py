"""Who may ask, and for which tenant: API tokens, and tokens of an outside issuer (OIDC)."""
