"""What every folder of the service stands on.

Identifiers, keys, the table base, the scope of a request.
"""
