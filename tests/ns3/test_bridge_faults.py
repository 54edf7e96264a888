"""Whatever happens to the simulation or its parent: a clear error, in time, and nothing left."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path

import pytest
import zmq
from bridge_helpers import TOY, toy_command

from dcqcn_gym.core.errors import BackendError, ConfigError, StateError, UnknownNameError
from dcqcn_gym.envs.scenario.scenario import Scenario, load_scenario
from dcqcn_gym.extras.ns3.backend import Ns3Backend
from dcqcn_gym.extras.ns3.bridge.errors import (
    ProtocolError,
    SchemaMismatchError,
    SimulationCrashedError,
    SimulationTimeoutError,
)
from dcqcn_gym.extras.ns3.bridge.link import Deadlines, bind
from waiting import alive, wait_for

Toy = Callable[..., Ns3Backend]


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load_scenario("fb-hadoop")


def started(backend: Ns3Backend, scenario: Scenario, seed: int = 7) -> Ns3Backend:
    backend.open(scenario, seed)
    backend.apply(scenario.default_setting())
    return backend


def test_exit_in_a_step_names_status_phase_time_and_last_words(
    toy: Toy, scenario: Scenario
) -> None:
    backend = started(toy("exit"), scenario)
    backend.advance()
    second = backend.advance()
    with pytest.raises(SimulationCrashedError, match="something is wrong") as caught:
        backend.advance()
    assert caught.value.status == 3
    assert caught.value.phase == "step 2"
    assert caught.value.time_ps == second.end_ps
    assert "--simSeed=7" in str(caught.value)


def test_a_signal_is_named(toy: Toy, scenario: Scenario) -> None:
    backend = started(toy("segfault"), scenario)
    backend.advance()
    backend.advance()
    with pytest.raises(SimulationCrashedError, match="SIGSEGV"):
        backend.advance()


def test_kill_9_in_mid_step_then_reset_works(toy: Toy, scenario: Scenario) -> None:
    backend = started(toy("hang"), scenario)
    first = backend.advance()
    backend.advance()
    pid = backend.process_id
    timer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    timer.start()
    with pytest.raises(SimulationCrashedError, match="SIGKILL"):
        backend.advance()
    timer.join()
    wait_for(lambda: not alive(pid), "its process ends")
    started(backend, scenario)
    assert backend.advance().host_tx_bytes.tolist() == first.host_tx_bytes.tolist()


def test_a_peer_that_dies_before_its_first_state(toy: Toy, scenario: Scenario) -> None:
    with pytest.raises(SimulationCrashedError, match="cannot build this network") as caught:
        toy("exit-in-open").open(scenario, 1)
    assert caught.value.phase == "init"


def test_a_peer_that_never_speaks(toy: Toy, scenario: Scenario, quick: Deadlines) -> None:
    backend = toy("silent", deadlines=quick)
    with pytest.raises(SimulationTimeoutError, match=r"within 3 s \(start"):
        backend.open(scenario, 1)
    assert backend.process_id == 0


def test_a_step_that_never_ends(toy: Toy, scenario: Scenario, quick: Deadlines) -> None:
    slow_start = Deadlines(step_s=quick.step_s, close_s=quick.close_s)
    backend = started(toy("hang", deadlines=slow_start), scenario)
    backend.advance()
    backend.advance()
    pid = backend.process_id
    with pytest.raises(SimulationTimeoutError, match="is not using the CPU"):
        backend.advance()
    wait_for(lambda: not alive(pid), "its process ends")


def test_garbage_is_a_protocol_error(toy: Toy, scenario: Scenario) -> None:
    with pytest.raises(ProtocolError, match="expected the message SimInitMsg"):
        toy("garbage").open(scenario, 1)


def test_another_schema_is_refused_and_named(toy: Toy, scenario: Scenario) -> None:
    with pytest.raises(SchemaMismatchError, match=r"knobs\[3\]\[1\].*furlong"):
        toy("other-schema").open(scenario, 1)


def test_a_command_that_does_not_exist_leaves_nothing(scenario: Scenario) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        Ns3Backend(command=["/no-such-program"]).open(scenario, 1)


def test_a_transport_that_is_none_is_refused_before_anything_starts() -> None:
    with pytest.raises(UnknownNameError, match="unknown transport 'tpc'; did you mean 'tcp'"):
        Ns3Backend(transport="tpc")  # type: ignore[arg-type]


def test_refused_settings_are_config_errors_and_do_not_end_it(toy: Toy, scenario: Scenario) -> None:
    backend = started(toy(), scenario)
    with pytest.raises(ConfigError, match="names no device"):
        backend.apply(
            {"cluster": scenario.default_setting(), "nic:9999": scenario.default_setting()}
        )
    assert backend.advance().index == 0


def test_kill_9_of_the_parent_leaves_no_process(scenario: Scenario, tmp_path: Path) -> None:
    program = (
        "import sys, time\n"
        "from dcqcn_gym.extras.ns3.backend import Ns3Backend\n"
        "from dcqcn_gym.envs.scenario.scenario import load_scenario\n"
        f"b = Ns3Backend(command=[sys.executable, {str(TOY)!r}])\n"
        "b.open(load_scenario('fb-hadoop'), 1)\n"
        "print(b.process_id, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    wait_for(lambda: not alive(child), "its process ends")


def test_interpreter_exit_without_close_leaves_no_process(scenario: Scenario) -> None:
    program = (
        "import sys\n"
        "from dcqcn_gym.extras.ns3.backend import Ns3Backend\n"
        "from dcqcn_gym.envs.scenario.scenario import load_scenario\n"
        f"b = Ns3Backend(command=[sys.executable, {str(TOY)!r}])\n"
        "b.open(load_scenario('fb-hadoop'), 1)\n"
        "print(b.process_id, flush=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    wait_for(lambda: not alive(int(done.stdout)), "its process ends")


def _one_interval(backend: Ns3Backend, name: str) -> list[int]:
    scenario = load_scenario(name)
    try:
        started(backend, scenario)
        return [int(b) for b in backend.advance().host_tx_bytes]
    finally:
        backend.close()


@pytest.mark.parametrize(
    "method", ["fork", *(pytest.param(m, marks=pytest.mark.slow) for m in ("forkserver", "spawn"))]
)
def test_start_methods_give_the_same_bytes(method: str, toy: Toy, scenario: Scenario) -> None:
    here = _one_interval(toy(), "fb-hadoop")
    closed = pickle.loads(pickle.dumps(Ns3Backend(command=toy_command())))
    with get_context(method).Pool(1) as pool:
        assert pool.apply(_one_interval, (closed, "fb-hadoop")) == here


def test_an_open_backend_is_refused_in_a_fork(toy: Toy, scenario: Scenario) -> None:
    backend = started(toy(), scenario)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            backend.advance()
        except StateError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    assert b"before a fork" in os.read(reader, 1000)
    os.close(reader)
    assert backend.advance().index == 0


def test_a_stale_socket_file_is_replaced_and_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "link.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with context, context.socket(zmq.REP) as rep:
        with pytest.raises(ConfigError, match="another process listens"):
            bind(rep, path, "ipc")
        listener.close()
        assert path.exists()
        assert bind(rep, path, "ipc") == f"ipc://{path}"
    path.unlink(missing_ok=True)
    path.write_text("")
    with (
        context,
        zmq.Context().socket(zmq.REP) as rep,
        pytest.raises(ConfigError, match="no socket"),
    ):
        bind(rep, path, "ipc")


def test_a_world_that_refuses_to_open_is_a_backend_error(toy: Toy, scenario: Scenario) -> None:
    backend = toy()
    backend.open(scenario, 3)
    with pytest.raises(StateError, match="call close"):
        backend.open(scenario, 3)
    backend.close()
    backend.close()
    with pytest.raises(StateError, match=r"call open\(\) first"):
        backend.advance()
    assert issubclass(SimulationCrashedError, BackendError)
