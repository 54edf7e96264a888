"""What every test process needs."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tools"))

# a shell that starts pytest in the background makes it, and all that it starts, ignore Ctrl-C;
# some tests interrupt a child as a person would
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
