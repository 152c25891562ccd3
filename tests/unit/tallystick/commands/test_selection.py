import pytest

from tallystick.commands.selection import select
from tallystick.errors import ToolNotDeclared

NAMES = ("shop.tools.search", "shop.tools.search_all", "shop.admin.delete", "old.tools.delete")


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("shop.tools.search", "shop.tools.search"),
        ("search", "shop.tools.search"),
        ("tools.search_all", "shop.tools.search_all"),
        ("admin.delete", "shop.admin.delete"),
    ],
)
def test_a_name_or_as_much_of_its_end_as_is_unique(given, meant):
    assert select(given, NAMES) == meant


def test_a_whole_name_goes_before_the_end_of_another():
    assert select("search", ["search", "shop.search"]) == "search"


@pytest.mark.parametrize(
    ("given", "names", "told"),
    [
        ("delete", NAMES, "delete may be old.tools.delete or shop.admin.delete: give the full"),
        ("earch", ["shop.search"], "There is no tool earch. Do you mean shop.search?"),
        ("shop.serch", ["shop.search"], "There is no tool shop.serch. Do you mean shop.search?"),
        ("zzz", ["a", "b"], "There is no tool zzz. There are: a, b."),
        ("zzz", "abcdefg", "There is no tool zzz. There are: a, b, c, d, e and 2 more."),
        ("zzz", [], "There is no tool zzz. There are none at all."),
    ],
)
def test_otherwise_it_says_which_there_are(given, names, told):
    with pytest.raises(ToolNotDeclared) as refused:
        select(given, names)
    assert refused.value.detail.startswith(told)
