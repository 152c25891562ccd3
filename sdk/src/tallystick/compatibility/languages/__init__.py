"""Regular languages: what patterns and lengths let through."""
