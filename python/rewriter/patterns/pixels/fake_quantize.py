"""Activations that the model itself rounds to the numbers of a byte, by FakeQuant and the like.

In blocks they are what they were: the op looks at each number by itself.
"""

from ....graph import QUANTIZING, Body, Node, attribute_types
from ....ops.records import FakeQuantize
from ...context import Context
from ...precision.carried import byte_of
from ...rules import Replacement

ROOTS = tuple(sorted(QUANTIZING))
NAMED = tuple(name for op in ROOTS for name in attribute_types(op))  # the op has them all
_ROLES = ("src", "min", "max", "num_bits")


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The rounding of a picture."""
    channels = body.shapes.channels(node.inputs[0])
    if channels is None:
        return None
    byte = byte_of(node, body)
    if isinstance(byte, str):
        return byte
    quantization, most = byte
    payload = FakeQuantize(
        origin=node.name, channels=channels, proto=node.proto, quantization=quantization, most=most
    )
    return Replacement(payload, dict(zip(_ROLES, node.inputs, strict=False)), node.name)
