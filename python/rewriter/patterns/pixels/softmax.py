"""Softmax of what a converted op computes."""

from ....graph.families import KEEP_MEMORY
from ....ops.records import Softmax
from ...rules import Match, Rule, require


def softmax(tf, x):
    """Softmax of what a converted op computes."""
    return tf.Softmax(x)


def _softmax(match: Match) -> Softmax:
    view = match.body.view
    maker = view.producer(view.origin(match["x"], KEEP_MEMORY))
    require(maker.payload is not None, "nothing converted computes what it reads: no gain")
    return Softmax(origin=match.root.name, channels=match.channels())


RULE = Rule(softmax, _softmax, like=None)
