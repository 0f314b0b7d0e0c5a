"""Softmax of what a converted op computes."""

from ....ops.records import Softmax
from ...rules import Declined, Match, Rule

# What hands on the memory it reads.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


def softmax(tf, x):
    """Softmax of what a converted op computes."""
    return tf.Softmax(x)


def _softmax(found: Match) -> Softmax:
    view = found.body.view
    if view.producer(view.origin(found["x"], _VIEWS)).payload is None:
        raise Declined("nothing converted computes what it reads: no gain")
    return Softmax(origin=found.root.name, channels=found.channels())


RULE = Rule(softmax, _softmax, like=None)
