"""Activations and bounds, which may be spelled with several ops: formulas and their steps.

One bound alone is a minimum or maximum, which lets infinities on the other side be. Keras has no op
for PReLU: relu(x) + (-slope) * relu(-x) is five nodes, of which two read x.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from .....graph import Body
from .....ops.records import Step, binary, eltwise
from ....rules import Idiom, Match, Number, PerChannel, Rule, require


def swish(tf, x, beta=1.0):
    return x * tf.Sigmoid(x * beta)


def mish(tf, x):
    return x * tf.Tanh(tf.Softplus(x))


def part(tf, six_times, sixth, six):
    """A sixth, or another part, which then is a scale: people write 1 / 6 in all precisions."""
    return tf.either(six_times * sixth, six_times / six)


def hard_sigmoid(tf, x, sixth=None, six=None):
    return part(tf, tf.Relu6(x + 3.0), sixth, six)


def hard_swish(tf, x, sixth=None, six=None):
    six_times = tf.Relu6(x + 3.0)
    return tf.either(x * part(tf, six_times, sixth, six), part(tf, x * six_times, sixth, six))


def gelu_erf(tf, x):
    erf = tf.either(tf.Erf(x * math.sqrt(0.5)), tf.Erf(x / math.sqrt(2.0)))
    erfc = tf.either(tf.Erfc(-x * math.sqrt(0.5)), tf.Erfc(-x / math.sqrt(2.0)))
    return x * 0.5 * tf.either(1.0 + erf, erfc)


def gelu_tanh(tf, x):
    cubed = x + 0.044715 * (x * tf.Square(x))
    return x * 0.5 * (1.0 + tf.Tanh(cubed * math.sqrt(2.0 / math.pi)))


def leaky_relu(tf, x, alpha):
    return tf.Maximum(x, x * alpha)


def clip(tf, x, low, high):
    inner = tf.either(tf.Maximum(tf.Minimum(x, high), low), tf.Minimum(tf.Maximum(x, low), high))
    return tf.either(inner, tf.ClipByValue(x, low, high))


def at_least(tf, x, low):
    return tf.Maximum(x, low)


def at_most(tf, x, high):
    return tf.Minimum(x, high)


def prelu(tf, x, slope):
    positive, negative = tf.either(tf.Relu(x), tf.Maximum(x, 0.0)), tf.Minimum(x, 0.0)
    minus_negative = tf.Relu(-x)
    halved = slope * (x - tf.Abs(x)) * 0.5
    is_above = tf.either(tf.Greater(x, 0.0), tf.GreaterEqual(x, 0.0))
    is_below = tf.either(tf.Less(x, 0.0), tf.LessEqual(x, 0.0))
    return tf.either(
        positive - slope * minus_negative,
        positive + tf.either(slope * tf.either(-minus_negative, negative), halved),
        tf.SelectV2(is_above, x, slope * x),
        tf.SelectV2(is_below, slope * x, x),
    )


def prelu_of_minus(tf, x, slope):
    return tf.either(tf.Relu(x), tf.Maximum(x, 0.0)) + slope * tf.Relu(-x)


def _fixed(name: str) -> Callable[[Match], Step]:
    return lambda match: eltwise(name)


def _hard(name: str) -> Callable[[Match], Step]:
    def step(match: Match) -> Step:
        with np.errstate(over="ignore", divide="ignore"):
            six = np.float32(match["six"] or 0.0)
            scale = float(6.0 / six if match["sixth"] is None else np.float32(match["sixth"]) * 6.0)
        require(math.isfinite(scale))
        return eltwise(name, **({} if scale == 1.0 else {"scale": scale}))

    return step


def _clip(match: Match) -> Step:
    """With low > high the order of the two ops decides; clip means max first, then min."""
    require(match["low"] <= match["high"])
    return eltwise("clip", alpha=match["low"], beta=match["high"])


def _bound(kind: str, name: str, match: Match) -> Step:
    if kind == "max" and match[name] == 0.0:
        return eltwise("relu")
    return binary(kind, "scalar", np.array([match[name]], np.float32))


def _rule(formula: Callable, step: Callable[[Match], Step], **kinds) -> Rule:
    def plan(match: Match) -> Idiom:
        return Idiom(match.root.name, match["x"], (step(match),), match.nodes)

    return Rule(formula, plan, **kinds)


_ANY = Number(-math.inf, math.inf)
_PARTS = {"sixth": Number(), "six": Number()}
RULES = (
    _rule(swish, lambda match: eltwise("swish", alpha=match["beta"]), beta=Number()),
    _rule(mish, _fixed("mish")),
    _rule(hard_sigmoid, _hard("hard_sigmoid"), **_PARTS),
    _rule(hard_swish, _hard("hard_swish"), **_PARTS),
    _rule(gelu_erf, _fixed("gelu_erf")),
    _rule(gelu_tanh, _fixed("gelu_tanh")),
    # max(x, alpha * x) is leaky only for alpha in (0, 1]: 0 makes NaN of infinity.
    _rule(leaky_relu, lambda m: eltwise("leaky_relu", alpha=m["alpha"]), alpha=Number(1e-37, 1.0)),
    _rule(clip, _clip, low=Number(), high=Number()),
    _rule(at_least, partial(_bound, "max", "low"), low=_ANY),
    _rule(at_most, partial(_bound, "min", "high"), high=_ANY),
    _rule(prelu, lambda match: binary("prelu", "channel", match["slope"]), slope=PerChannel()),
    _rule(prelu_of_minus, lambda m: binary("prelu", "channel", -m["slope"]), slope=PerChannel()),
)
ROOTS = tuple(sorted({op for rule in RULES for op in rule.ROOTS}))


def recognise(node, body: Body):
    idioms = [rule.find(node, body) for rule in RULES if node.op in rule.ROOTS]
    return [idiom for idiom in idioms if isinstance(idiom, Idiom)]
