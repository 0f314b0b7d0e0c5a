"""Each rule is tested by its own formula, as it is and with one op or number of it another.

TF_BLOCKDNN_CASES says how many cases, TF_BLOCKDNN_SEED which.
"""

import collections
import itertools
import os

import pytest
import tensorflow as tf
from cells import LOOPS, Loop
from formulas import RULES, Case
from tables import JOINED, MOVES, STEPS

from tf_blockdnn.python.rewriter.capture import capture
from tf_blockdnn.python.rewriter.patterns import PATTERNS
from tf_blockdnn.python.rewriter.patterns.pixels.elementwise import affine, functions
from tf_blockdnn.python.rewriter.rules import Number, Rule

CASES = int(os.environ.get("TF_BLOCKDNN_CASES", 40))
# So far apart, two runs have no case in common.
SEED = 1_000_000 * int(os.environ.get("TF_BLOCKDNN_SEED", 0))
# Of which nothing is made: no step has the function with its operands in that order.
NEVER = {f"{op} exchanged" for op in ("DivNoNan", "FloorDiv", "FloorMod")}
NEVER |= {
    f"{op}, a constant" for op in (*NEVER, "SquaredDifference", "SquaredDifference exchanged")
}
NEVER |= {"explicit_depth_pool"}  # The op has no paddings.
# A grid a channel is none of a byte's.
NEVER |= {name for name in MOVES if name.startswith("FakeQuantWithMinMaxVarsPerChannel")}


@pytest.fixture(scope="module", autouse=True)
def _own_rewriting():
    """TensorFlow's own takes max(x, 1.5 x) for a LeakyRelu."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


_ALL = RULES | JOINED | STEPS | MOVES


def _check(name: str, count: int, spoils, monkeypatch=None, least: int = 0):
    """Draws so many cases, and up to 80 more until `least` of them are converted: what is never
    converted proves nothing. Whatever is made of them has to be right.

    Args:
        spoils: seed -> whether one op or number is another.

    Returns:
        How many cases had which outcome.
    """
    # Rows of a table have the same kinds: by their names they draw different arguments.
    first = SEED + sum(map(ord, name)) * (name in STEPS or name in MOVES)
    outcomes, faults = collections.Counter(), []
    for seed in range(first, first + count + 80):
        if seed >= first + count and outcomes["fired"] >= least:
            break
        case = Case(_ALL[name], seed, spoils(seed), monkeypatch)
        outcomes[case.outcome] += 1
        faults += [f"seed {seed}: {case.fault}"] if case.fault else []
    assert not faults, (outcomes, faults)
    assert outcomes["fired"] >= least, outcomes
    return outcomes


@pytest.mark.parametrize("name", RULES)
def test_a_formula_is_found_and_its_numbers_are_right(monkeypatch, name):
    outcomes = _check(name, CASES, lambda seed: False, monkeypatch)
    assert outcomes["fired"] >= CASES // 8, outcomes


@pytest.mark.parametrize("name", RULES)
def test_a_formula_with_another_op_or_number_is_no_such_formula(monkeypatch, name):
    _check(name, CASES // 2, lambda seed: True, monkeypatch)


@pytest.mark.parametrize("name", [*STEPS, *MOVES])
def test_what_a_table_finds_has_the_right_numbers(monkeypatch, name):
    _check(name, CASES // 5, lambda seed: False, monkeypatch, least=name not in NEVER)


@pytest.mark.parametrize("name", _ALL)
def test_between_neighbours_the_numbers_are_right(name):
    """Every other case is spoilt."""
    is_row = name in STEPS or name in MOVES
    count = max(1, CASES // (40 if is_row else 5))
    _check(name, count, lambda seed: bool(seed % 2), least=not (is_row or name in NEVER))


@pytest.mark.parametrize("name", LOOPS)
def test_a_cell_is_found_in_its_spellings(name):
    loops = [Loop(name, SEED + i, False) for i in range(max(1, CASES // 10))]
    assert all(loop.fired for loop in loops)
    assert not [loop.fault for loop in loops if loop.fault]


@pytest.mark.parametrize("name", LOOPS)
def test_a_cell_with_another_op_is_no_such_cell(name):
    loops = [Loop(name, SEED + i, True) for i in range(max(1, CASES // 10))]
    assert not [loop.fault for loop in loops if loop.fault]


def test_everything_that_is_found_has_a_formula():
    patterns = [*itertools.chain(*PATTERNS.values()), affine, functions]
    drawn = {op for name, row in _ALL.items() if name not in RULES for op in row.ROOTS}
    tables = [pattern for pattern in patterns if not isinstance(pattern, Rule)]
    assert {op for pattern in tables for op in pattern.ROOTS} <= drawn


def _at(function, op: str):
    """The last node of that op, and the graph that it is in."""
    spec = tf.TensorSpec([2, 24])
    body = capture(tf.function(function, autograph=False).get_concrete_function(spec)).main
    return [node for node in body.view.topological() if node.op == op][-1], body


def test_tries_and_hits_are_counted():
    rule = Rule(lambda tf, x, beta=1.0: x * tf.Sigmoid(x * beta), lambda match: "", beta=Number())
    for function in (lambda x: x * tf.sigmoid(1.5 * x), lambda x: x * tf.tanh(x)):
        rule.find(*_at(function, "Mul"))
    assert (rule.tries, rule.hits) == (2, 1)


def test_the_nearest_miss_is_named():
    rule = RULES["swish"]
    assert "made by Tanh, not by Sigmoid" in rule.why_not(*_at(lambda x: x * tf.tanh(x), "Mul"))

    def is_read(x):
        gate = tf.sigmoid(x)
        return x * gate, gate

    assert "read elsewhere" in rule.why_not(*_at(is_read, "Mul"))
    assert rule.find(*_at(is_read, "Mul")) is None


def test_a_name_that_tensorflow_does_not_know_fails_when_the_rule_is_made():
    with pytest.raises(ValueError, match="no op 'Sigmiod'"):
        Rule(lambda tf, x: tf.Sigmiod(x), lambda match: None)
    with pytest.raises(ValueError, match="no attribute 'keepdims'"):
        Rule(lambda tf, x: tf.Mean(x, tf.axes(x, -1), keepdims=True), lambda match: None)


def test_only_tensors_of_float32_are_matched():
    def function(x):
        wide = tf.cast(x, tf.float64)
        return tf.cast(wide * tf.sigmoid(wide), tf.float32)

    assert "float64" in RULES["swish"].why_not(*_at(function, "Mul"))
