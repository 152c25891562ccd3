"""The chapters of the demo, in the order in which they are told."""

from collections.abc import Awaitable, Callable
from typing import Final

from cli.demo.chapters.calling import called_once
from cli.demo.chapters.crashing import four_workers_die, people_decide, the_recorded_version
from cli.demo.chapters.proving import histories_replay, the_books_agree
from cli.demo.chapters.publishing import a_tuple_not_a_name, published_beside_each_other
from cli.demo.chapters.retiring import the_old_version_goes
from cli.demo.stage import Stage

Chapter = Callable[[Stage], Awaitable[None]]

CHAPTERS: Final[tuple[Chapter, ...]] = (
    published_beside_each_other,
    a_tuple_not_a_name,
    called_once,
    four_workers_die,
    the_recorded_version,
    people_decide,
    the_old_version_goes,
    the_books_agree,
    histories_replay,
)
