"""Peers in processes: who takes turns, who leaves, and why."""

import dataclasses

import numpy as np
import pytest

from tf_blockdnn.python.measuring.workers import Workers

_TABLE = """
import dataclasses, os

@dataclasses.dataclass
class Row:
    runner: object
    packages: tuple = ("numpy", "no-such-package")

def times(factor):
    return lambda model, inputs, threads: lambda: {"y": float(model) * factor * inputs["x"]}

def fails_later(model, inputs, threads):
    runs = iter(range(3))
    return lambda: {"y": float(model) * inputs["x"] + 0 * next(runs)}

def cases(model, inputs, threads):
    return {name: lambda: {"y": 2 * inputs["x"]} for name in ("one", "two")}

def setting(model, inputs, threads):
    return lambda: {"y": inputs["x"] * float(os.environ["FACTOR"])}

PEERS = {"same": Row(times(1)), "reference": Row(times(1)), "close": Row(times(1.001)),
         "wrong": Row(times(2)), "short": Row(lambda *_: lambda: {"y": [1.0]}),
         "fails": Row(fails_later), "cases": Row(cases), "setting": Row(setting)}
"""


@dataclasses.dataclass
class Row:
    environment: dict


@pytest.fixture
def workers(tmp_path):
    (tmp_path / "peers_in_processes.py").write_text(_TABLE)
    x = np.arange(5, dtype=np.float32)
    with Workers(tmp_path, "peers_in_processes", {"x": x}, threads=3, burst=2) as running:
        yield running


def start(workers, *peers, model="2", **environment):
    for peer in peers:
        workers.start(peer, Row(environment), model)


def test_peers_take_turns(workers):
    start(workers, "same", "reference")
    times = workers.take_turns(3)
    assert {peer: len(timing.milliseconds) for peer, timing in times.items()} == {
        "same": 6,
        "reference": 6,
    }
    about = workers.running["same"].about
    assert about["versions"] == {"numpy": np.__version__, "no-such-package": None}
    assert workers.running["same"].memory() > 1 << 20 and not workers.problems


def test_a_turn_is_as_many_runs_as_fit(workers):
    start(workers, "same")
    assert len(workers.take_turns(1, turn_ms=1e-9)["same"].milliseconds) == 1
    assert len(workers.take_turns(1, turn_ms=5)["same"].milliseconds) > 2


def test_who_computes_something_else_leaves(workers):
    start(workers, "same", "close", "wrong", "short", "reference")
    differences = workers.check("reference", lambda peer: 0.01 if peer == "close" else 1e-5)
    assert list(workers.running) == ["same", "close", "reference"]
    assert workers.problems["wrong"] == "other outputs: off by 1.0e+00 of the largest"
    assert workers.problems["short"].startswith("other outputs: shapes differ")
    assert differences["same"].relative == 0 < differences["close"].relative < 0.01
    assert set(workers.take_turns(1)) == {"same", "close", "reference"}


def test_the_first_is_compared_with_where_the_reference_does_not_run(workers):
    start(workers, "wrong", "same")
    assert workers.check("reference", lambda peer: 1e-5)["wrong"].relative == 0
    assert set(workers.problems) == {"same"}


def test_who_does_not_start_or_fails_later_is_named(workers):
    assert not workers.start("no one", Row({}), "2")
    start(workers, "fails", "same")
    assert set(workers.take_turns(2)) == {"same"}
    assert workers.problems == {"no one": "KeyError: 'no one'", "fails": "StopIteration"}


def test_cases_are_timed_where_they_exist(workers):
    start(workers, "cases", "same")
    assert set(workers.take_turns(1, "two")) == {"cases"}
    assert set(workers.take_turns(1)) == {"same"}
    assert workers.take_turns(1, "three") == {} and not workers.problems


def test_a_row_has_an_environment_of_its_own(workers):
    start(workers, "setting", FACTOR="{threads}")
    np.testing.assert_array_equal(workers.running["setting"].outputs(), [3 * np.arange(5)])
