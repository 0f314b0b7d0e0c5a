"""Turns and their statistics."""

import json

import pytest

from tf_blockdnn.python.measuring import timing


def turns(log, **milliseconds):
    def turn(name, times):
        times = iter(times)

        def once():
            log.append(name)
            milliseconds = next(times)
            return milliseconds if isinstance(milliseconds, list) else [milliseconds]

        return once

    return {name: turn(name, times) for name, times in milliseconds.items()}


def test_peers_take_turns_and_the_first_one_moves_on():
    log = []
    timing.interleave(turns(log, a=range(9), b=range(9), c=range(9)), runs=2, warmup=1)
    assert "".join(log) == "abc" + "bca" + "cab"


def test_warmup_is_not_counted():
    times = timing.interleave(turns([], a=[100, 50, 3, 1, 2]), runs=3, warmup=2)["a"]
    assert times.milliseconds == (3, 1, 2)
    assert (times.minimum, times.median) == (1, 2)
    assert json.loads(json.dumps(times.to_json())) == {"min_ms": 1, "median_ms": 2, "runs": 3}


def test_a_turn_may_be_a_burst():
    times = timing.interleave(turns([], a=[[9, 9], [4, 2], [3]]), runs=2, warmup=1)["a"]
    assert times.milliseconds == (4, 2, 3)


def test_rounds_are_reported():
    rounds = []
    timing.interleave(turns([], a=range(9)), runs=2, warmup=1, on_round=rounds.append)
    assert rounds == [1, 2, 3]


@pytest.mark.parametrize("runs, warmup", [(0, 1), (1, -1)])
def test_senseless_counts(runs, warmup):
    with pytest.raises(ValueError, match="at least"):
        timing.interleave(turns([], a=[]), runs=runs, warmup=warmup)


def test_timed_measures_milliseconds(monkeypatch):
    clock = iter([1.0, 1.25])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    assert timing.timed(lambda: None)() == [250]
