"""Softmax of what a converted op computes."""

from ....ops.records import Softmax
from ...rules import Declined, Match, Rule

# What hands on the memory it reads.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


def softmax(tf, x):
    """Softmax of what a converted op computes."""
    return tf.Softmax(x)


def _softmax(match: Match) -> Softmax:
    view = match.body.view
    if view.producer(view.origin(match["x"], _VIEWS)).payload is None:
        raise Declined("nothing converted computes what it reads: no gain")
    return Softmax(origin=match.root.name, channels=match.channels())


RULE = Rule(softmax, _softmax, like=None)
