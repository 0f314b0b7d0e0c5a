"""The gradient of a region, as in an optimised SavedModel: that of the ops it is made of."""

import tensorflow as tf

from ..graph import flatten, has_gradients
from ..tensorflow_private import context
from .node import GRADIENTS


def _region(op, *upstream):
    """Computes the region again, op by op, and goes back through these; it stands in a graph."""
    body = flatten(context.context().get_function_def(op.get_attr("f").name))
    arguments = [node for node in body.graph_def.node if node.name in body.inputs]
    for node in arguments:
        body.graph_def.node.remove(node)
    inputs = [tf.identity(x) for x in op.inputs]
    sources = [x for x in inputs if has_gradients(x.dtype)]
    results = tf.graph_util.import_graph_def(
        body.graph_def,
        input_map={f"{name}:0": x for name, x in zip(body.inputs, inputs, strict=True)},
        return_elements=[f"{ref.node}:{ref.port}" for ref in body.fetches],
        name="",
    )
    pairs = [(y, dy) for y, dy in zip(results, upstream, strict=True) if has_gradients(y.dtype)]
    grads = iter(tf.gradients([y for y, _ in pairs], sources, [dy for _, dy in pairs]))
    return [next(grads) if has_gradients(x.dtype) else None for x in inputs]


GRADIENTS["BlockdnnRegion"] = _region
