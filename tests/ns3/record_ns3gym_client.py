"""Record what the published ns3-gym client sends: the data of test_ns3gym_client.py.

``python tests/ns3/record_ns3gym_client.py PYTHON > tests/ns3/ns3gym_client_bytes.txt``, where
PYTHON is one that has the client installed. The comment lines at the top are to be written by hand.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import zmq

SESSION = Path(__file__).with_name("ns3gym_session.py")
STOP = bytes.fromhex("1001")


def relay(client: str, command: list[str]) -> list[bytes]:
    """Run a simulation against the client that waits there; return what the client sends."""
    sent: list[bytes] = []
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context.socket(zmq.REP) as ours, context.socket(zmq.REQ) as theirs:
        theirs.connect(client)
        port = ours.bind_to_random_port("tcp://127.0.0.1")
        with subprocess.Popen([*command, f"--openGymPort={port}"]):
            while not sent or sent[-1] != STOP:
                theirs.send(ours.recv())
                sent.append(theirs.recv())
                ours.send(sent[-1])
    return sent


def record(python: str, command: list[str], port: int, episodes: int) -> list[bytes]:
    """Return every message of a session of the client in this Python."""
    with subprocess.Popen([python, str(SESSION), str(port)], stdout=subprocess.DEVNULL):
        runs = [relay(f"tcp://127.0.0.1:{port}", command) for _ in range(episodes)]
    return [message for run in runs for message in run]


if __name__ == "__main__":
    from bridge_helpers import toy_command

    simulation = [*toy_command(), "--scenario=mini-llm-alltoall", "--simSeed=3"]
    print("\n".join(m.hex() for m in record(sys.argv[1], simulation, 15_556, 2)))
