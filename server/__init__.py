"""The composition root: settings, the database, the HTTP application and the worker."""
