"""The bridge to ns-3: build its module, run it in a process of its own, speak ns3-gym to it."""

from __future__ import annotations
