"""The connection to ns-3: build its module, run it in a process, exchange ns3-gym messages."""

from __future__ import annotations
