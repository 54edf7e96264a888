"""The learner of ACC: its slopes, what it learns, what torch makes of the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from dcqcn_gym.tuners.acc_state import sizes
from dcqcn_gym.tuners.ddqn import Ddqn, DdqnSettings, ReplayBuffer, _gradients, forward, new_layers


def stream(seed: int = 1) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


def test_slopes_are_those_of_differences() -> None:
    layers = new_layers((3, 5, 4, 2), stream())
    for _, bias in layers:
        bias += 0.1  # at 0 a state that wakes no unit would lie on the kink of the next layer
    x, push = stream(2).normal(size=(6, 3)), stream(3).normal(size=(6, 2))
    found = _gradients(layers, forward(layers, x), push)
    flat = [part for layer in layers for part in layer]
    assert len(flat) == 6

    def value() -> float:
        return float((forward(layers, x)[-1] * push).sum())

    for part, slope in zip(flat, found, strict=True):
        assert slope.shape == part.shape
        for index in np.ndindex(part.shape):
            old = part[index]
            part[index] = old + 1e-6
            above = value()
            part[index] = old - 1e-6
            below = value()
            part[index] = old
            assert slope[index] == pytest.approx((above - below) / 2e-6, abs=1e-6)


def test_a_first_step_of_adam_worked_out_by_hand() -> None:
    """The first step of Adam is the learning rate against the sign of the slope."""
    brain = Ddqn([(np.array([[1.0], [2.0]]), np.zeros(2))], DdqnSettings(batch=1, gamma=0.0))
    one = np.ones((1, 1))
    brain.memory.add(one, np.array([0]), np.array([0.25]), one)
    brain.learn(stream())
    weight, bias = brain.layers[0]
    assert weight.ravel().tolist() == pytest.approx([1.0 - 1e-3, 2.0])
    assert bias.tolist() == pytest.approx([-1e-3, 0.0])


def test_the_action_is_chosen_by_one_network_and_valued_by_the_other() -> None:
    """Double DQN: online values (1, 2) choose action 1, which the target values at 10."""
    settings = DdqnSettings(batch=1, gamma=0.5, learning_rate=1e-9)
    brain = Ddqn([(np.zeros((2, 1)), np.array([1.0, 2.0]))], settings)
    brain.target = [(np.zeros((2, 1)), np.array([99.0, 10.0]))]
    brain.memory.add(np.zeros((1, 1)), np.array([0]), np.array([-4.5]), np.zeros((1, 1)))
    # wanted: -4.5 + 0.5 * 10 = 0.5; the value of action 0 is 1, so its bias has to fall
    brain.learn(stream())
    assert brain.layers[0][1][0] < 1.0
    assert brain._mean[1].tolist() == pytest.approx([0.1 * 0.5, 0.0])


def test_it_learns_which_action_pays() -> None:
    """Action 0 pays below a half, action 1 above it."""
    random = stream()
    brain = Ddqn(new_layers((1, 8, 2), random), DdqnSettings(gamma=0.0, learning_rate=0.01))
    x = random.random((500, 1))
    action = random.integers(2, size=500)
    brain.memory.add(x, action, ((x[:, 0] > 0.5) == action).astype(float), x)
    for _ in range(400):
        brain.learn(random)
    probe = np.array([[0.1], [0.3], [0.7], [0.9]])
    assert brain.act(probe, 0.0, random).tolist() == [0, 0, 1, 1]
    assert brain.updates == 400


def test_exploration_draws_every_action() -> None:
    brain = Ddqn(new_layers(sizes(), stream()), DdqnSettings())
    drawn = brain.act(np.zeros((400, 20)), 1.0, stream(2))
    assert set(drawn.tolist()) == set(range(20))
    assert len(set(brain.act(np.zeros((400, 20)), 0.0, stream(2)).tolist())) == 1


def test_the_memory_forgets_the_oldest() -> None:
    memory = ReplayBuffer.empty(3, 1)
    for i in range(5):
        memory.add(np.full((1, 1), i), np.array([i]), np.array([float(i)]), np.zeros((1, 1)))
    assert sorted(memory.action.tolist()) == [2, 3, 4]
    assert set(memory.draw(50, stream()).tolist()) == {0, 1, 2}


def test_state_goes_on_to_the_bit() -> None:
    def step(brain: Ddqn, random: np.random.Generator) -> None:
        x = random.random((70, 20))
        brain.memory.add(x, brain.act(x, 0.5, random), random.random(70), x)
        brain.learn(random)

    whole, part = (Ddqn(new_layers(sizes(), stream()), DdqnSettings()) for _ in range(2))
    a, b = stream(5), stream(5)
    for _ in range(3):
        step(whole, a)
        step(part, b)
    again = Ddqn(new_layers(sizes(), stream(9)), DdqnSettings())
    again.restore({name: array.copy() for name, array in part.state().items()})
    for _ in range(3):
        step(whole, a)
        step(again, b)
    for one, other in zip(whole.state().values(), again.state().values(), strict=True):
        assert one.tobytes() == other.tobytes()
