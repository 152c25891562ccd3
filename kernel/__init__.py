"""What every folder of the service stands on: identifiers, keys, the table base, the scope of a request."""
