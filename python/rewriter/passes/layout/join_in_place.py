"""Lets producers write into a concatenation instead of copying what they wrote.

In blocks of 16 channels a part of the channels of an image is one piece of memory. The
first producer makes the wider tensor and writes one part, each further one takes that
tensor over, writes another and hands it on; what the last one hands on is the result:

    concat(a(x), b(y), c(z))  =  c(z, into=b(y, into=a(x)))

Values that are concatenations themselves become parts, too, also where others read them:
those read a part of the wider tensor, before the next producer takes it over. So a
block of DenseNet, which joins a few channels to all before, layer by layer, is one tensor.

What cannot be written in place (it starts within a block, or somebody reads it who knows no
parts) is copied there by a separate concatenation.
"""

import bisect
import functools
from dataclasses import dataclass, replace

from ....graph import Body, GraphView, Node, Ref
from ....ops.record import Quantization
from ....ops.records import BLOCK, Concat, Record
from ...context import Context


@dataclass(frozen=True)
class _Part:
    """A tensor at a place in the result: `channels` channels from `first` on.

    Its numbers, where they are bytes, stand for what `quantization` says.
    """

    ref: Ref
    first: int
    channels: int
    quantization: Quantization

    @property
    def end(self) -> int:
        return self.first + self.channels


@dataclass(frozen=True)
class _Piece:
    """What one op writes: a part in place, or neighbours that are copied."""

    parts: tuple[_Part, ...]
    copied: bool


def join_in_place(body: Body, context: Context) -> None:
    """Lets producers write into a [concatenation](#concatenation-in-place).

    The widest first: concatenations among the values are then parts of it, not tensors.
    """
    view = body.view
    position = _positions(view)
    for node in reversed(view.topological()):
        if node.name in view and _is_plain_concat(node) and not view.has_control_edges(node.name):
            chain = _plan(view, node, position)
            if chain is not None:
                written = sum(not piece.copied for piece in chain.pieces)
                leaves = sum(len(piece.parts) for piece in chain.pieces)
                context.report.joined.append((node.payload.origin, f"{written} of {leaves}"))
                if chain.apply():
                    position = _positions(view)


def _positions(view: GraphView) -> dict[str, float]:
    """Of each node one that is larger than those of all that must run before it."""
    return {node.name: i for i, node in enumerate(view.topological())}


def _plan(view: GraphView, root: Node, position: dict[str, float]) -> "_Chain | None":
    """The chain of most parts that are written in place, if there are any."""
    copied: set[Ref] = set()
    while True:
        chain = _Chain(view, root, copied, position)
        if all(piece.copied for piece in chain.pieces):
            return None
        stuck = {part.ref for part in chain.in_place if not chain.can_join(part)}
        if not stuck:
            return chain
        copied |= stuck


class _Chain:
    """The ops that make one concatenation, in their order.

    Attributes:
        pieces: what each op writes.
        in_place: the values written in place and the concatenations among the values.
    """

    def __init__(self, view: GraphView, root: Node, copied: set[Ref], position: dict[str, float]):
        self._view, self._root, self._position = view, root, position
        leaves, self._nested = _flatten(view, root, copied)
        self._inner = {root.name, *(part.ref.node for part in self._nested)}
        # What reads a nested value waits for the last piece of it, and may lead to neighbours.
        read = [part for part in self._nested if self._outer_readers(part)]
        edges = {edge for part in read for edge in (part.first, part.end)}
        self.pieces = sorted(_pieces(leaves, copied, edges), key=self._last)
        numbers = {part.first: i for i, piece in enumerate(self.pieces) for part in piece.parts}
        firsts = [leaf.first for leaf in leaves]
        writers = [numbers[first] for first in firsts]
        written = [piece.parts[0] for piece in self.pieces if not piece.copied]
        self.in_place = [*written, *self._nested]
        self._complete = {}  # part -> the last op that writes some of it
        for part in self.in_place:
            begin, end = (bisect.bisect_left(firsts, edge) for edge in (part.first, part.end))
            self._complete[part.ref] = max(writers[begin:end])
        self._last_of = {part.ref.node: self._complete[part.ref] for part in self.in_place}
        self._last_of[root.name] = len(self.pieces) - 1

    @functools.cached_property
    def _latest(self) -> dict[str, int]:
        """Of each node the last op that must run before it, or that it is: before what this exceeds
        it cannot run. Most chains have no reader that asks."""
        before, last_of = self._view.latest_before(self._last_of), self._last_of
        return {name: max(last, last_of.get(name, -1)) for name, last in before.items()}

    def can_join(self, part: _Part) -> bool:
        """Whether this tensor may become a part of the result."""
        starts, ends = part.first % BLOCK == 0, part.end % BLOCK == 0
        if not starts or not (ends or part.end == self._root.payload.channels):
            return False
        view = self._view
        producer, readers = view.producer(part.ref), view.consumers(part.ref)
        inside = [node for node, _ in readers if node.name in self._inner]
        if len(inside) != 1 or view.is_fetched(part.ref) or not _can_write(view, producer):
            return False
        if not _same_numbers(producer.payload, self._root.payload):
            return False
        return all(
            _can_read(node, index) and self._latest[node.name] <= self._complete[part.ref]
            for node, index in readers
            if node.name not in self._inner
        )

    def _last(self, piece: _Piece) -> float:
        """The position of what makes the piece."""
        return max(self._position[part.ref.node] for part in piece.parts)

    def apply(self) -> bool:
        """Edits the graph; every part must be able to join.

        Returns: whether the positions hold no more. Ops write in the order of theirs, but an op may
            wait for readers that stood after it.
        """
        view, total, reads, writers = self._view, self._root.payload.channels, {}, []
        for part in self.in_place:
            for node in map(view.node, self._outer_readers(part)):
                inner = node.payload.src_part[0] if node.payload.src_part else 0
                node.payload = replace(node.payload, src_part=(part.first + inner, total))
                reads[node.name] = self._complete[part.ref]
        for piece in self.pieces:
            node = self._copying(piece) if piece.copied else view.producer(piece.parts[0].ref)
            writers.append((node, replace(node.payload, dst_part=(piece.parts[0].first, total))))
        view.replace_uses(self._root.ref, write_in_turn(view, writers, reads))
        view.remove_dead([self._root.name])
        return bool(reads)

    def _copying(self, piece: _Piece) -> Node:
        channels = tuple(part.channels for part in piece.parts)
        root, of_parts = self._root.payload, tuple(part.quantization for part in piece.parts)
        payload = replace(
            root,
            channels=sum(channels),
            parts=channels,
            src_quantization=of_parts[0],
            src_quantizations=of_parts if root.src_quantizations else (),
        )
        inputs = payload.roles(part.ref for part in piece.parts)
        node = self._view.add(
            Node(f"{self._root.name}/copied", payload.op, inputs, payload=payload)
        )
        self._position[node.name] = self._last(piece) + 0.5
        return node

    def _outer_readers(self, part: _Part) -> list[str]:
        names = (node.name for node, _ in self._view.consumers(part.ref))
        return [name for name in names if name not in self._inner]


def write_in_turn(view: GraphView, writers: list, reads: dict[str, int]) -> Ref:
    """Lets each op write into the tensor that the one before it wrote; returns the last one's.

    Who reads a tensor that the next op takes over runs before that: a control edge says so where no
    data does.

    Args:
        writers: (node, what it becomes) of each op.
        reads: reader -> the number of the writer whose tensor becomes the source.
    """
    tensors: list[Ref] = []
    for number, (node, payload) in enumerate(writers):
        inputs = node.by_role | ({"into": tensors[-1]} if tensors else {})
        waits = [name for name, last in reads.items() if last == number - 1]
        before = view.ancestors([node.name]) if waits else ()
        waits = [name for name in waits if name not in before]
        controls = [*node.controls, *waits]
        written = Node(node.name, payload.op, inputs, controls, payload=payload)
        tensors.append(view.replace(written).ref)
    for name, last in reads.items():
        reader = view.node(name)
        view.set_inputs(reader, reader.by_role | {"src": tensors[last]})
    return tensors[-1]


def _flatten(view: GraphView, root: Node, copied: set[Ref]) -> tuple[list[_Part], list[_Part]]:
    """The values in the order of their channels, and the concatenations taken apart for them."""
    leaves, nested = [], []

    def visit(concat: Node, first: int) -> None:
        payload = concat.payload
        for role, channels in zip(concat.roles, payload.parts, strict=True):
            ref = concat.by_role[role]
            part = _Part(ref, first, channels, payload.quantization_of(role))
            value = view.producer(ref)
            nests = _is_plain_concat(value) and _same_numbers(value.payload, root.payload)
            if nests and ref not in copied:
                nested.append(part)
                visit(value, first)
            else:
                leaves.append(part)
            first += channels

    visit(root, 0)
    return leaves, nested


def _pieces(leaves: list[_Part], copied: set[Ref], edges: set[int]) -> list[_Piece]:
    """A piece for each leaf; neighbours that are copied share one between `edges`."""
    pieces: list[_Piece] = []
    for leaf in leaves:
        if leaf.ref not in copied:
            pieces.append(_Piece((leaf,), copied=False))
        elif pieces and pieces[-1].copied and leaf.first not in edges:
            pieces[-1] = _Piece((*pieces[-1].parts, leaf), copied=True)
        else:
            pieces.append(_Piece((leaf,), copied=True))
    return pieces


def _is_plain_concat(node: Node) -> bool:
    payload = node.payload
    return isinstance(payload, Concat) and not payload.dst_part and not payload.src_parts


def _same_numbers(payload: Record, root: Concat) -> bool:
    """Whether what it writes stands for the same numbers as what the root writes."""
    written = (root.dtype, root.dst_quantization)
    return (payload.dtype, payload.dst_quantization) == written


def _knows_parts(payload: Record | None) -> bool:
    """Whether the op reads and writes parts of the channels of wider tensors."""
    return payload is not None and payload.has("src_part") and payload.has("dst_part")


def _can_read(node: Node, index: int) -> bool:
    """Whether the op can read the input as a part of a wider tensor."""
    payload = node.payload
    known = _knows_parts(payload) and node.roles[index] == "src"
    return known and not getattr(payload, "src_blocks", ())


def _can_write(view: GraphView, node: Node) -> bool:
    """Whether the node, or what a concatenation reads, can write to another place."""
    if _is_plain_concat(node):
        return not view.has_control_edges(node.name)
    known = isinstance(node.payload, Concat) or _knows_parts(node.payload)
    return known and not node.payload.dst_part
