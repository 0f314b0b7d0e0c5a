"""Decides, for a functional or sequential model, which tensors are blocked."""

from dataclasses import dataclass

import keras

from .candidates import NORMALIZATIONS, PLAIN, STARTS, blocked_class, reason_to_keep


@dataclass
class Decision:
    """What becomes of a layer.

    Attributes:
      cls: of bd.layers, or None: the layer is kept.
      reads: C of each input that is blocked, None for the plain ones.
      writes: whether the result is blocked.
      reason: why it is kept.
    """

    cls: "type | None" = None
    reads: tuple = ()
    writes: bool = False
    reason: str = ""

    @property
    def arguments(self) -> dict:
        """What the layer's configuration says of it, beside Keras's."""
        if not any(self.reads) and not self.writes:
            return {}
        many = len(self.reads) > 1
        channels = (list(self.reads) if many else self.reads[0]) if any(self.reads) else None
        return {"blocked_channels": channels, "blocked_output": self.writes}

    @property
    def text(self) -> str:
        layout = {True: "blocked", False: "plain"}
        return f"{self.cls.__name__}, {layout[any(self.reads)]} to {layout[self.writes]}"


def plan(model) -> dict:
    """id of an operation of `model` -> Decision.

    A functional model, or one of its kind: from the first layer that gains to the last, tensors
    stay blocked.
    """
    nodes = [
        node
        for depth in sorted(model._nodes_by_depth, reverse=True)
        for node in model._nodes_by_depth[depth]
    ]
    calls: dict[int, int] = {}
    for node in nodes:
        calls[id(node.operation)] = calls.get(id(node.operation), 0) + 1
    decisions, blocked = {}, {}  # blocked: id of a KerasTensor -> C
    for node in nodes:
        operation = node.operation
        if isinstance(operation, (keras.layers.InputLayer, keras.Model)):
            continue
        decision = _decide(node, blocked, calls[id(operation)])
        decisions[id(operation)] = decision
        if decision.writes:
            (output,) = node.outputs
            blocked[id(output)] = output.shape[-1]
    _end_regions(model, nodes, decisions)
    return decisions


def _decide(node, blocked: dict, calls: int) -> Decision:
    layer, inputs = node.operation, node.arguments.keras_tensors
    reason = reason_to_keep(layer) if isinstance(layer, keras.Layer) else "no layer"
    if reason:
        return Decision(reason=reason)
    cls = blocked_class(layer)
    plain = Decision(cls, tuple(None for _ in inputs))
    if issubclass(cls, PLAIN):
        return plain
    if issubclass(cls, NORMALIZATIONS) and not any(id(x) in blocked for x in inputs):
        return plain
    if calls > 1:
        return Decision(reason="called more than once")
    ranks = {len(x.shape) for x in (*inputs, *node.outputs)} - {2}
    if len(ranks) != 1 or not ranks <= {3, 4, 5}:
        return Decision(reason=f"inputs of rank {', '.join(map(str, sorted(ranks)))}")
    if any(x.shape[-1] is None for x in inputs):
        return Decision(reason="channels are not known")
    reads = tuple(blocked.get(id(x)) for x in inputs)
    if not issubclass(cls, STARTS) and not any(reads):
        return Decision(reason="no blocked layer before it")
    return Decision(cls, reads, len(node.outputs[0].shape) > 2)


def _end_regions(model, nodes, decisions: dict) -> None:
    """Results that no blocked layer reads, and those of the model, are plain."""
    results = {id(x) for x in model.outputs}
    readers: dict[int, list] = {}
    for node in nodes:
        for x in node.arguments.keras_tensors:
            readers.setdefault(id(x), []).append(decisions.get(id(node.operation)))
    for node in reversed(nodes):
        decision = decisions.get(id(node.operation))
        if decision is None or not decision.writes:
            continue
        (output,) = node.outputs
        wanted = any(r and any(r.reads) for r in readers.get(id(output), []))
        decision.writes = wanted and id(output) not in results
