"""``dcqcn-gym-agent``: an agent from its own small package; `dcqcn-gym hw agent` is the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dcqcn_gym.core.config import load_toml
from dcqcn_gym.core.errors import DcqcnGymError
from dcqcn_gym.hw.agent.config import AgentConfig
from dcqcn_gym.hw.agent.privileges import KEPT, keep_only
from dcqcn_gym.hw.agent.units import unit_text
from dcqcn_gym.hw.dependencies import require_grpc

if TYPE_CHECKING:
    from dcqcn_gym.hw.agent.server import AgentServer


def run_agent(kind: str, config: Path) -> None:
    """Run the agent of a file until it is ended; it gives up what it needs no more first."""
    more = load_toml(config, AgentConfig).capabilities
    keep_only((*KEPT[kind], *more))  # before there are other threads
    require_grpc()
    from dcqcn_gym.hw.agent.server import load_agent

    running: AgentServer = load_agent(config, kind)
    running.start()
    status = running.guard.status
    said = f"listening on {running.address}; confirmed setting: {status.confirmed}"
    print(said, file=sys.stderr, flush=True)
    if status.problem:
        print(f"not at its confirmed setting: {status.problem}", file=sys.stderr, flush=True)
    try:
        running.wait()
    finally:
        running.close()


def main() -> None:
    """Run an agent, or print the systemd unit that does."""
    parser = argparse.ArgumentParser("dcqcn-gym-agent", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=sorted(KEPT))
    parser.add_argument("--config", type=Path, required=True, help="the agent's file (TOML)")
    parser.add_argument("--unit", action="store_true", help="print the systemd unit, and end")
    given = parser.parse_args()
    if given.unit:
        program = str(Path(sys.argv[0]).absolute())
        sys.stdout.write(unit_text(f"{program} {given.kind}", given.kind, str(given.config)))
        return
    try:
        run_agent(given.kind, given.config)
    except DcqcnGymError as error:
        print(f"dcqcn-gym-agent: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
