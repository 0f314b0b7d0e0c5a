"""Checks a body after each pass: what a pass may not break, whatever it does.

Every input, control edge and output exists, and nothing waits for itself. What a node reads has the
data type, the layout and the channels that it wants. Nodes that come in the place of others make
tensors of the same shape, and outputs keep data type and rank.
"""

from tensorflow.core.framework import types_pb2

from ..errors import VerificationError
from ..layout import NHWC
from .body import Body
from .formats import Format, read, written
from .types import output_dtypes
from .view import GraphView, Node, Ref

_OURS = (types_pb2.DT_FLOAT, types_pb2.DT_BFLOAT16, types_pb2.DT_UINT8)  # what reorders change


class Verifier:
    """Checks what has changed in a body since the last check; created before anything changes."""

    def __init__(self, body: Body):
        self._body = body
        self._fetches = body.view.fetches
        self._outputs = [written(body, ref) for ref in body.view.fetches]
        self._known = {node.name: _state(node) for node in body.view}

    def check(self, laid_out: bool) -> None:
        """Raises VerificationError where a pass has broken the graph.

        Args:
            laid_out: whether all changes of layout and type stand in the graph. Before that it is
                only planned which tensors are blocked, and which are bytes.
        """
        view, known = self._body.view, self._known
        changed = [
            node
            for node in view
            if (state := known.get(node.name)) is None
            or state[0] is not node
            or state[1] is not node.payload
            or state[2] is not node.inputs
            or state[3] is not node.controls
        ]
        if changed or len(view) < len(known) or view.fetches != self._fetches:
            check_edges(view)
            self._fetches = view.fetches
            names = dict.fromkeys(node.name for node in changed)
            names.update((reader, None) for node in changed for reader in view.readers(node.name))
            for name in names:
                self._check_node(view.node(name), laid_out)
            known.update((node.name, _state(node)) for node in changed)
            for name in [name for name in known if name not in view]:
                del known[name]
        self._check_outputs(laid_out)

    def _check_node(self, node: Node, laid_out: bool) -> None:
        if fault := node.payload.fault() if node.payload is not None else None:
            raise VerificationError(f"{_name(node)}: {fault}")
        for ref, wanted in zip(node.inputs, read(node), strict=False):
            if node.payload is None and self._is_plain(ref, wanted.dtype):
                continue
            wanted = wanted if laid_out else wanted._replace(layout=None, rank=None)
            if conflict := self._conflict(ref, wanted, laid_out):
                raise VerificationError(f"{_name(node)} reads {ref}, which has {conflict}")
        shapes = self._body.shapes
        if inferred := shapes.contradiction(node):
            raise VerificationError(
                f"{_name(node)} was {shapes.shape(node.ref)}, became {inferred}"
            )

    def _conflict(self, ref: Ref, wanted: Format, laid_out: bool) -> str | None:
        current = written(self._body, ref)
        if not laid_out and current.dtype in _OURS and wanted.dtype in _OURS:
            current = current._replace(dtype=None, quantization=None)
        return current.conflict(wanted)

    def _is_plain(self, ref: Ref, dtype: int) -> bool:
        """Whether one of TensorFlow's nodes makes the tensor, of this type: others read it so."""
        producer = self._body.view.producer(ref)
        return producer.payload is None and output_dtypes(producer)[ref.port :][:1] == [dtype]

    def _check_outputs(self, laid_out: bool) -> None:
        fetches = self._body.view.fetches
        if len(fetches) != len(self._outputs):
            raise VerificationError(f"{len(self._outputs)} outputs became {len(fetches)}")
        for ref, old in zip(fetches, self._outputs, strict=True):
            wanted = Format(old.dtype, NHWC if laid_out else None, rank=old.rank)
            if conflict := self._conflict(ref, wanted, laid_out):
                raise VerificationError(f"the output {ref} has {conflict}")


def check_edges(view: GraphView) -> None:
    """Raises VerificationError unless all that is read exists and nothing waits for itself."""
    seen: set[str] = set()
    for node in [node for node in view.topological() if node.name in view]:
        sources = [source for source, _ in node.inputs] + node.controls
        for name in [] if seen.issuperset(sources) else sources:
            if name not in view:
                raise VerificationError(f"{_name(node)} reads {name}, which is gone")
            closes_loop = "NextIteration" in (node.op, view.node(name).op)  # of version 1
            if name not in seen and not closes_loop:
                raise VerificationError(f"{_name(node)} waits for itself, by {name}")
        for ref in node.inputs:
            types = output_dtypes(view.producer(ref)) if ref.port else ()
            if types and ref.port >= len(types):
                text = f"{_name(node)} reads {ref}, which has {len(types)} outputs"
                raise VerificationError(text)
        seen.add(node.name)
    for ref in view.fetches:
        if ref.node not in view:
            raise VerificationError(f"the output {ref} is gone")
    for name in view.targets:
        if name not in view:
            raise VerificationError(f"{name}, which must run, is gone")


def _name(node: Node) -> str:
    return f"{node.name} ({node.op})"


def _state(node: Node) -> tuple:
    return node, node.payload, node.inputs, node.controls  # Others take the place of these lists.
