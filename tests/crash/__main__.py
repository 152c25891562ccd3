"""Runs schedules of real processes, tells what they broke, and ends with a line that sums them up.

python -m tests.crash --seed 1 --duration 600
python -m tests.crash --seed 1 --first 47 --schedules 1
"""

import argparse
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.crash.schedule import EFFECTS
from tests.crash.soak import STORY, Soak, soak

INTERRUPTED = 130


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__, prog="python -m tests.crash")
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--duration", type=float, default=600, help="none begins after it; seconds")
    asked.add_argument("--schedules", type=int, help="how many at most")
    asked.add_argument("--first", type=int, default=0, help="the number of the first schedule")
    asked.add_argument("--effects", type=int, default=EFFECTS, help="how many a schedule has")
    told = asked.parse_args()
    # What ends this process ends the others with it.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp(prefix="tallystick-soak-"))
    given = Soak(told.seed, told.effects, told.first, told.schedules, told.duration)
    try:
        summary = soak(given, folder, partial(print, flush=True))
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        if not any(folder.glob(f"*/*/{STORY}")):
            shutil.rmtree(folder)
    print(summary)
    return 1 if summary.violations else 0


if __name__ == "__main__":
    sys.exit(main())
