"""The supervisor's entry, `python -m server.embedded FOLDER`: `attach` starts it, not people."""

import sys
from pathlib import Path

from server.embedded.supervisor import supervise

supervise(Path(sys.argv[1]))
