"""Runs schedules of a seed, tells what they broke, and ends with one line that sums them up.

python -m tests.simulation --seed 1 --schedules 10000
python -m tests.simulation --seed 1 --first 4711 --schedules 1
python -m tests.simulation --mutant "takes a report under any fence"
"""

import argparse
import sys
from typing import Final

from tests.simulation.mutants import MUTANTS
from tests.simulation.product import Product
from tests.simulation.soak import soak, story

STORIES_MAX: Final = 3


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, prog="python -m tests.simulation")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--schedules", type=int, default=10_000)
    asked.add_argument("--first", type=int, default=0, help="the number of the first schedule")
    asked.add_argument("--mutant", choices=sorted(MUTANTS), help="break one part of the product")
    told = asked.parse_args()
    product = MUTANTS[told.mutant].product if told.mutant else Product()
    summary = soak(told.seed, told.schedules, first=told.first, product=product)
    shown: set[str] = set()
    for name, fault in summary.violations:
        if fault.rule not in shown and len(shown) < STORIES_MAX:
            shown.add(fault.rule)
            seed, number = name.split(":")
            print(f"\nseed {seed}, schedule {number}: effect {fault.about or 'any'}: {fault.what}")
            print(*story(name, fault.rule, product), sep="\n")
    print(f"digest={summary.digest}")
    print(summary)
    return 1 if summary.violations else 0


if __name__ == "__main__":
    sys.exit(main())
