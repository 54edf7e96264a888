"""The first day with real devices: two servers and one switch, step by step, pass or fail.

    python examples/lab_day/lab_day.py fleet.toml lab.toml lab-day

The fleet's file and the agents are those of docs/hardware.md, "Install"; the scenario file has the
topology of the lab and, as its monitor interval, what the switch's counters allow. Every step is a
command that you can type yourself. The first that fails ends the day and says what to do; no trial
is left behind, and a change that stays only from step 4 on. Keep some RDMA traffic on the link, as
of ``ib_write_bw``: idle counters show little.

It will break first, by what is known of these devices, where
1. a NIC runs programmable congestion control (its agent refuses to start: step 1),
2. the switch polls its queues every 10 s or its watermarks every 60 s (step 5),
3. nobody measures round trips (step 5 says so, and goes on).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TRIAL_S = 6.0
"""How long the trial of step 3 lasts; nobody confirms it."""
AGENTS = (
    "start the agent that is named (`systemctl status dcqcn-gym-nic`). If its log says that the "
    "card runs programmable congestion control: `mlxconfig -d DEVICE set USER_PROGRAMMABLE_CC=0` "
    "and a power cycle; every DOCA algorithm on that card ends with it"
)
UNITS = "compare with `ecnconfig -l` and cc_params by hand; do not go on while they differ"
BACK = "`dcqcn-gym hw status --fleet FLEET` names the device and the command that mends it"
POLLING = (
    "the message names the counters: `counterpoll queue interval 1000` and `counterpoll watermark "
    "interval 1000` on the switch, or the longer monitor_interval_us that it names"
)
ROUND_TRIPS = (
    "no round trips are measured, so that term of the utility is 1 whatever happens: run "
    "`dcqcn-gym hw probe` on both servers, with rtt_file in their agents' files"
)


def step(number: int, title: str, words: Sequence[str], cure: str) -> None:
    """Type a command and say whether it passed; else what to do, and end the day."""
    command = ["dcqcn-gym", "hw", *words]
    print(f"step {number}: {title}\n  $ {' '.join(command)}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "dcqcn_gym", *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        undo = "; `dcqcn-gym hw rollback` undoes step 4" if number > 4 else ""
        print(f"{done.stdout}{done.stderr}\n  FAIL. What to do: {cure}{undo}")
        raise SystemExit(1)
    print("  pass", flush=True)


def main(fleet: str, scenario: str, out: str) -> None:
    """Carry out the steps."""
    on, lab = ["--fleet", fleet], ["--scenario", scenario]
    step(
        1, "every agent answers, every device is where its journal has it", ["status", *on], AGENTS
    )
    changed = ["apply", *on, "--set", "kmin=120", "--set", "rp_min_rate=50"]
    step(2, "what a change would write, in the devices' own units", [*changed, "--dry-run"], UNITS)
    step(3, "a trial that nobody confirms", [*changed, "--hold", f"{TRIAL_S:g}"], UNITS)
    print(f"  {TRIAL_S:g} s pass: hands off", flush=True)
    time.sleep(TRIAL_S + 2.0)
    step(3, "it went back by itself", ["status", *on], BACK)
    step(4, "a change that stays", [*changed, "--why", "lab day"], BACK)
    step(4, "every device holds it", ["status", *on], BACK)
    seen, tuned = str(Path(out) / "seen"), str(Path(out) / "tuned")
    look = ["tune", *on, *lab, "--tuner", "do-nothing", "--intervals", "3", "--out", seen]
    step(5, "three intervals of counters, under the scenario's initial setting", look, POLLING)
    last = json.loads((Path(out) / "seen" / "run.jsonl").read_text().splitlines()[-2])
    if "rtt_sum_ps" in last.get("unknown", ()):
        print(f"  NOTE: {ROUND_TRIPS}")
    site = ["tune", *on, *lab, "--safe", "site", "--intervals", "6", "--out", tuned]
    step(6, "the keeper turns marking and the floor rate, then all goes back", site, BACK)
    step(6, "every device is where it was", ["status", *on], BACK)
    step(7, "the emergency stop", ["stop", *on, "--why", "lab day"], BACK)
    step(7, "and its end", ["stop", *on, "--release"], BACK)
    step(8, "the change of step 4 is undone", ["rollback", *on, "--why", "lab day"], BACK)
    step(8, "every device is as this morning", ["status", *on], BACK)
    print("the day is over: every step passed")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(
            "expected: python examples/lab_day/lab_day.py FLEET.toml SCENARIO.toml OUT"
        )
    main(*sys.argv[1:])
