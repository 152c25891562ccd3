"""A table is named after its class."""

from kernel.tables import Row
from server.tables import SCHEMA


def test_every_table_has_the_name_of_its_class():
    names = {one.__name__: str(one.__tablename__) for one in Row.__subclasses__()}
    assert names["EffectOpenRow"] == "effect_open"
    assert names["ApiTokenRow"] == "api_token"
    assert set(names.values()) == SCHEMA.tables.keys()
