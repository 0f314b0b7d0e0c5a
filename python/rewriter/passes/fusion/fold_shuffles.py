"""Folds shuffles of channels, with the splits and concatenations around them, into weights.

A dense convolution may write channels in any order, and read them in any. Let A be the tensors
that convolutions write, and let each reader's source be a list of channels of A, which is all that
concatenation, shuffle and split make. Then the list goes into the reader's weights,

    sum over i of w[i] * x[i],  x[i] = a[list[i]]   =   sum over c of w'[c] * a[c],
    w'[list[i]] = w[i],  w' = 0 elsewhere

and nothing is moved. So that few zeros are multiplied, a writer orders channels by their
readers: channels that the same convolutions read are neighbours, in blocks of 16 of their own
where they fill these. All writers of a group write into one wide tensor, one after the other, and
a reader names the blocks of it that it reads. In ShuffleNetV2 a unit's channels are read after
one, two, three ... units: a half, a quarter, an eighth of them; these fill the same number of
blocks as if nothing was sorted.

Zero times infinity is NaN, so algorithm "direct" folds only what needs no zeros.

A depthwise convolution between works on each channel by itself and has the weights put in the order
of the blocks that it reads.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ....graph import Body, GraphView, Node, Ref, moved
from ....ops.records import BLOCK, FINITE, Conv, Step
from ...context import Context
from ...followers import Followers
from ...patterns.movement.cut import ROUTES, route
from ..layout.join_in_place import write_in_turn

_NOBODY = -1  # in a list of channels: a lane that nothing needs
# Lanes that may be read for each lane of a source by itself, and beyond that by each reader: what
# is folded saves a pass over all of them.
_MOST_LANES, _MORE_LANES = 2, 2 * BLOCK


def fold_shuffles(body: Body, context: Context) -> dict:
    """Folds shuffles, splits and concatenations of channels into the weights on both sides."""
    folded = context.report.folded
    before = len(folded)
    for group in filter(lambda group: group.moves, _groups(body)):
        folding = _Folding(group) if group.can_fold() else None
        exact = context.options.algorithm == "direct"
        if folding and (folding.has_no_zeros() if exact else folding.is_dense_enough()):
            folding.apply()
            folded += group.routes.items()
    # Those known so far read what has gone.
    return {"followers": Followers(body)} if len(folded) > before else {}


@dataclass
class _Group:
    """Routing nodes that are connected and the convolutions that write for them.

    Attributes:
        first: writer -> the number of the first channel; all arrays count like this.
        arrays: tensor -> the numbers of the channels.
        routes: routing node -> op.
    """

    body: Body
    first: dict[str, int] = field(default_factory=dict)
    arrays: dict[Ref, np.ndarray] = field(default_factory=dict)
    routes: dict[str, str] = field(default_factory=dict)

    def absorb(self, other: "_Group") -> None:
        self.first |= other.first
        self.arrays |= other.arrays
        self.routes |= other.routes

    @property
    def moves(self) -> bool:
        """Whether there is more than concatenation, which needs no folding."""
        return any(op != "ConcatV2" for op in self.routes.values())

    def readers(self) -> list[tuple[Node, int]]:
        """All (node, input) that read a tensor of the group and are no routes themselves."""
        readers = [reader for ref in self.arrays for reader in self.body.view.consumers(ref)]
        return [(node, index) for node, index in readers if node.name not in self.routes]

    def can_fold(self) -> bool:
        """Whether dense convolutions alone write and read it, and nothing orders it."""
        view, readers = self.body.view, self.readers()
        if any(map(view.is_fetched, self.arrays)):
            return False
        if any(map(view.has_control_edges, (*self.first, *self.routes))):
            return False
        return (
            bool(readers)
            and all(_can_write(view.node(name).payload) for name in self.first)
            and all(self._can_read(node, index) for node, index in readers)
        )

    def _can_read(self, node: Node, index: int) -> bool:
        array = self.arrays[node.inputs[index]]  # of a tensor [N, H, W, C] of different channels?
        if array.ndim != 1 or len(set(array)) < len(array) or not isinstance(node.payload, Conv):
            return False
        if node.roles[index] != "src":
            return False
        return node.payload.groups == 1 or _dense_after(self.body.view, node) is not None


class _Folding:
    """Where each channel of a group lies in the wide tensor, and what the nodes become."""

    def __init__(self, group: _Group):
        self._view = view = group.body.view
        position = {node.name: i for i, node in enumerate(view.topological())}
        self._writers = sorted(group.first, key=position.__getitem__)
        self._routes = group.routes
        self._sources = {node.name: group.arrays[node.src] for node, _ in group.readers()}
        self._lanes: dict[str, list[int]] = {}  # writer -> channels of it, in a new order
        self._start: dict[str, int] = {}  # writer -> the first lane
        self._place: dict[int, int] = {}  # channel -> lane
        self.total = 0
        wanted: dict[int, list[str]] = {}
        for name, array in self._sources.items():
            for channel in array:
                wanted.setdefault(int(channel), []).append(name)
        for name in self._writers:
            first = group.first[name]
            channels = range(first, first + view.node(name).payload.channels)
            lanes = _in_blocks({c - first: tuple(wanted[c]) for c in channels if c in wanted})
            self._lanes[name], self._start[name] = lanes, self.total
            taken = ((c + first, i) for i, c in enumerate(lanes) if c != _NOBODY)
            self._place |= {c: self.total + i for c, i in taken}
            self.total += len(lanes)

    def is_dense_enough(self) -> bool:
        """Whether readers multiply few zeros, and every writer has a reader."""
        read = sum(BLOCK * len(self._blocks(name)) for name in self._sources)
        needed = sum(-(-len(array) // BLOCK) * BLOCK for array in self._sources.values())
        most = _MOST_LANES * needed + _MORE_LANES * len(self._sources)
        return all(self._lanes.values()) and read <= most

    def has_no_zeros(self) -> bool:
        """Whether readers multiply no lane of others by zero, which may be infinite."""
        fills = (len(array) == BLOCK * len(self._blocks(n)) for n, array in self._sources.items())
        return all(self._lanes.values()) and all(fills)

    def apply(self) -> None:
        """Edits the graph."""
        view, writers = self._view, []
        # Of each node the last writer that must run before it: what it exceeds may run later.
        latest = view.latest_before({name: i for i, name in enumerate(self._writers)})
        for name in self._sources:
            self._read(name)
        for name in self._writers:
            node = view.node(name)
            payload = _with_outputs(node.payload, self._lanes[name])
            writers.append((node, replace(payload, dst_part=(self._start[name], self.total))))
        write_in_turn(view, writers, {name: latest[name] for name in self._sources})
        view.remove_dead(reversed(self._routes))

    def _blocks(self, reader: str) -> list[int]:
        return sorted({self._place[int(c)] // BLOCK for c in self._sources[reader]})

    def _read(self, name: str) -> None:
        """Lets a convolution read some blocks of the wide tensor."""
        node, blocks = self._view.node(name), self._blocks(name)
        where = {block: i * BLOCK for i, block in enumerate(blocks)}
        order = [_NOBODY] * (len(blocks) * BLOCK)
        for i, channel in enumerate(self._sources[name]):
            lane = self._place[int(channel)]
            order[where[lane // BLOCK] + lane % BLOCK] = i
        if node.payload.groups > 1:
            dense = _dense_after(self._view, node)
            dense.payload = _with_inputs(dense.payload, order)
            conv = _with_outputs(node.payload, order)
            conv = replace(conv, in_channels=conv.channels, groups=conv.channels)
        else:
            conv = _with_inputs(node.payload, order)
        if blocks[-1] - blocks[0] + 1 == len(blocks):
            conv = replace(conv, src_part=(blocks[0] * BLOCK, self.total))
        else:
            conv = replace(conv, src_part=(0, self.total), src_blocks=tuple(blocks))
        node.payload = conv


def _groups(body: Body) -> list[_Group]:
    """All groups; a convolution that no routing node reads is a group by itself."""
    group_of: dict[str, _Group] = {}
    count = 0
    for node in body.view.topological():
        if isinstance(node.payload, Conv):
            channels = np.arange(count, count + node.payload.channels)
            group_of[node.name] = _Group(body, {node.name: count}, {node.ref: channels})
            count += node.payload.channels
        elif node.payload is None and node.op in ROUTES and node.inputs:
            _join(node, body, group_of)
    return list({id(group): group for group in group_of.values()}.values())


def _join(node: Node, body: Body, group_of: dict[str, _Group]) -> None:
    """Adds a routing node to the groups of all that it reads, which become one."""
    refs = moved(node)
    groups = [group_of.get(ref.node) for ref in refs]
    if not groups or not all(g and ref in g.arrays for g, ref in zip(groups, refs, strict=True)):
        return
    arrays = route(node, body, [g.arrays[r] for g, r in zip(groups, refs, strict=True)])
    if arrays is None:
        return
    group = groups[0]
    for other in {id(g): g for g in groups if g is not group}.values():
        group.absorb(other)
    group.routes[node.name] = node.op
    group.arrays |= {Ref(node.name, port): array for port, array in enumerate(arrays)}
    for member in (*group.first, *group.routes):
        group_of[member] = group


def _can_write(conv: Conv) -> bool:
    """Whether it may write channels in another order."""
    return conv.groups == 1 and not conv.pool and _is_free(conv)


def _is_free(conv: Conv) -> bool:
    """Whether the steps read no tensors, and keep finite what weights of zero will multiply."""
    return all(s.name in FINITE and not isinstance(s.operand, str) for s in conv.steps)


def _dense_after(view: GraphView, node: Node) -> Node | None:
    """The dense convolution that alone reads a depthwise one, which may have another order."""
    conv, (reader, _) = node.payload, view.only_reader(node.ref)
    if not conv.depthwise or conv.channels != conv.in_channels or not _is_free(conv):
        return None
    if reader is None or not isinstance(reader.payload, Conv) or reader.payload.groups != 1:
        return None
    return reader if view.is_only_for(node.ref, reader) else None


def _in_blocks(kinds: dict[int, Hashable]) -> list[int]:
    """The keys in an order where those of a kind lie together, and _NOBODY to whole blocks.

    Each kind fills separate blocks, and what remains of it goes, undivided, to the first block
    that has room for it.
    """
    classes: dict[Hashable, list[int]] = {}
    for key, kind in kinds.items():
        classes.setdefault(kind, []).append(key)
    blocks, rests = [], []
    for keys in classes.values():
        whole = len(keys) // BLOCK * BLOCK
        blocks += [keys[i : i + BLOCK] for i in range(0, whole, BLOCK)]
        rests.append(keys[whole:])
    shared: list[list[int]] = []
    for rest in sorted(filter(None, rests), key=len, reverse=True):
        room = next((block for block in shared if len(block) + len(rest) <= BLOCK), None)
        if room is None:
            shared.append(list(rest))
        else:
            room += rest
    return [k for block in blocks + shared for k in (*block, *[_NOBODY] * (BLOCK - len(block)))]


def _take(values: np.ndarray, order: Sequence[int], fill: float, axis: int = -1) -> np.ndarray:
    """The values along an axis in that order, `fill` where it says _NOBODY."""
    index = np.asarray(order)
    result = np.take(values, np.maximum(index, 0), axis)
    np.moveaxis(result, axis, -1)[..., index == _NOBODY] = fill
    return result


def _with_outputs(conv: Conv, order: Sequence[int]) -> Conv:
    """The convolution with output channels in that order."""

    def moved(step: Step) -> Step:
        if not isinstance(step.operand, np.ndarray) or step.operand.size == 1:
            return step
        return replace(step, operand=_take(step.operand.reshape(-1), order, 1.0))

    return replace(
        conv,
        weights=_take(conv.weights, order, 0.0),
        scale=None if conv.scale is None else _take(conv.scale, order, 1.0),
        shift=None if conv.shift is None else _take(conv.shift, order, 0.0),
        steps=tuple(map(moved, conv.steps)),
        channels=len(order),
    )


def _with_inputs(conv: Conv, order: Sequence[int]) -> Conv:
    """The convolution with input channels in that order."""
    return replace(conv, weights=_take(conv.weights, order, 0.0, axis=2), in_channels=len(order))
