"""Views: tensors that are other ones, x, in another order or with other axes; and how they sink.

What treats all elements, or all channels, alike is done on x, and the result is viewed instead,

    f(view(x)) = view(f(x)),    view'(view(x)) = x,

so that views sink until they meet what wants x itself, or the end of the graph. What counts along
their axes says how (graph/indices.py): operands are laid beside x, and a reduction of whole axes
of x is done there, that of parts of an axis after it, of the few numbers that are left.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ....graph import (
    Axis,
    Body,
    Index,
    Node,
    Ref,
    Shape,
    attribute_types,
    dtype,
    leaves,
    open_sizes,
    size_of,
    slices,
    view_axes,
    views_beside,
    write_views,
)
from ....graph.families import BINARY, IDENTITIES, UNARY, VIEWS

_WIDENING = frozenset({"ConcatV2", "Pad"})
_REDUCTIONS = frozenset({"Max", "Mean", "Min", "Sum"})
_CUTS = frozenset({"Slice", "StridedSlice"})
_SPLITS = frozenset({"Split", "SplitV"})


class View(NamedTuple):
    """The node that makes a view of x; what counts along the axes of x and of the view."""

    node: Node
    x: Ref
    source: list[Axis]
    axes: list[Axis]

    def axis(self, number: int) -> int | None:
        """The axis of x that the view's axis of that number is, if it is one."""
        axis = self.axes[number]
        alike = (axis == other or leaves(axis) == leaves(other) != [] for other in self.source)
        return next((at for at, same in enumerate(alike) if same), None)


class Views:
    """The views of one kind, or of several, in a body.

    Args:
        is_kind: whether a node makes one.
        takes: whether an operand that is no view and no constant may be laid beside x.
    """

    def __init__(
        self,
        body: Body,
        is_kind: Callable[[Node, Body], bool],
        takes: Callable[[Ref, Body], bool] = lambda ref, body: False,
    ):
        self.body, self._is_kind, self._takes = body, is_kind, takes
        self._sunk: set[str] = set()  # nodes that make a view after work that was done on x

    def view(self, ref: Ref) -> View | None:
        """The view that a tensor is."""
        node, body = self.body.view.producer(ref), self.body
        if node.op not in VIEWS or node.payload is not None:
            return None
        if node.name not in self._sunk and not self._is_kind(node, body):
            return None
        shape = body.shapes.shape(node.inputs[0]) or (None,) * body.shapes.rank(ref)
        source = [(Index(size),) for size in shape]
        axes = view_axes(node, source, body)
        return axes and View(node, node.inputs[0], source, axes)

    def tells(self, shape: Shape | None) -> bool:
        """Whether `sizes` can say a shape."""
        return shape is not None and open_sizes(shape).count(-1) <= 1

    def sizes(self, shape: Shape, name: str) -> list[int] | Ref:
        """A shape as a Reshape takes it; nodes that are made for it have this name."""
        return open_sizes(shape)

    def sink(self, node: Node) -> None:
        """Does the node's work on x, if it can be done there."""
        views = list(filter(None, map(self.view, node.inputs)))
        if not views:
            return
        # The operand to which the others are broadcast.
        view = max(views, key=lambda view: sum(map(bool, map(leaves, view.axes))))
        if node.op in VIEWS - IDENTITIES:
            self._cancel(node, view)
        elif node.op in _REDUCTIONS:
            self._reduce(node, view)
        elif node.op in _CUTS:
            if node.inputs[0] == view.node.ref and view.node.op != "Reshape":
                self._cut(node, view)
        elif node.op in _SPLITS:
            if view.node.op != "Reshape":
                self._split(node, view)
        elif inputs := self._inputs(node, view):
            self._work_below(node, view, inputs)

    def _work_below(self, node: Node, view: View, inputs: list[Ref]) -> None:
        """Does the node's work on these tensors, and replaces it by the view of the result."""
        body, write, (_, *settings) = self.body, self.body.writer(node.name), view.node.inputs
        before, after = (body.shapes.shape(ref) for ref in (view.node.ref, node.ref))
        done = self._below(node, inputs)
        self._sunk.add(node.name)
        if view.node.op == "Reshape":
            if node.op in _WIDENING:
                before, settings = after, [self.sizes(after, f"{node.name}/shape")]
            write.put("Reshape", done.ref, *settings)
            body.shapes.put(node.ref, before)
        else:
            write.put(view.node.op, done.ref, *settings, **_kept(view))

    def _below(self, node: Node, inputs: list[Ref]) -> Node:
        """The node's work on these tensors."""
        done = Node(f"{node.name}/x", node.op, inputs, node.controls, node.proto)
        self.body.shapes.shape(self.body.view.add(done).ref)  # while the op can be asked for it
        return done

    def _cut(self, node: Node, view: View) -> None:
        """What a slice takes of each axis, it takes of that axis of x."""
        body, write = self.body, self.body.writer(node.name)
        taken = slices(node, body.known, len(view.axes)) or []
        places = {view.axis(n): part for n, part in enumerate(taken) if part != slice(None)}
        if not places or None in places:
            return
        parts = [places.get(at, slice(None)) for at in range(len(view.source))]
        bounds = [[part.start for part in parts], [part.stop for part in parts]]
        masks = [sum(1 << at for at, n in enumerate(ends) if n is None) for ends in bounds]
        begin, end = ([int(n or 0) for n in ends] for ends in bounds)
        steps = [1 if part.step is None else int(part.step) for part in parts]
        mask = {"begin_mask": masks[0], "end_mask": masks[1]}
        done = write.add("x", "StridedSlice", view.x, begin, end, steps, **mask)
        body.shapes.shape(done)
        write.put(view.node.op, done, *view.node.inputs[1:], **_kept(view))

    def _split(self, node: Node, view: View) -> None:
        """Splits x, and makes the view of each part."""
        body, write = self.body, self.body.writer(node.name)
        axis = body.shapes.number(node.inputs[0 if node.op == "Split" else -1])
        at = None if axis is None else view.axis(axis % len(view.axes))
        parts = [Ref(node.name, port) for port in range(node.attr["num_split"].i)]
        if at is None or view.node.ref not in node.inputs or any(map(body.view.is_fetched, parts)):
            return
        number = write.constant("x/axis", at)
        inputs = [view.x if ref == view.node.ref else ref for ref in node.inputs]
        inputs[0 if node.op == "Split" else -1] = number
        done = self._below(node, inputs)
        for part in filter(body.view.use_count, parts):
            source, what = Ref(done.name, part.port), f"part_{part.port}"
            body.shapes.shape(source)
            part_view = write.add(what, view.node.op, source, *view.node.inputs[1:], **_kept(view))
            body.view.replace_uses(part, part_view)
        body.view.remove_dead([node.name])

    def _cancel(self, node: Node, view: View) -> None:
        axes = view_axes(node, view.axes, self.body)
        if axes is not None and list(map(leaves, axes)) == list(map(leaves, view.source)):
            self.body.view.bypass(node, view.x)

    def _inputs(self, node: Node, view: View) -> list[Ref] | None:
        """What the node reads where it works on x."""
        first, *others = node.inputs
        before, after = (self.body.shapes.shape(ref) for ref in (view.node.ref, node.ref))
        if view.node.op == "Reshape" and node.op in _WIDENING:
            if not self.tells(after):
                return None
        if node.op in BINARY:
            keeps = view.node.op != "Reshape" or after is not None and before[1:] == after[1:]
            return self._beside(node, view, node.inputs) if keeps else None
        if node.op == "ConcatV2" and all(map(self.view, node.inputs[:-1])):
            number = self.body.shapes.number(node.inputs[-1])
            at = None if number is None else view.axis(number % len(view.axes))
            values = None if at is None else self._beside(node, view, node.inputs[:-1])
            return values and [*values, self._like(node, at)]
        if first != view.node.ref:
            return None
        if node.op in UNARY | IDENTITIES:
            return [view.x, *others]
        if node.op == "BiasAdd" and not node.attr["data_format"].s.startswith(b"NC"):
            is_last = view.axis(len(view.axes) - 1) == len(view.source) - 1
            return [view.x, *others] if is_last else None
        if node.op == "Pad" and (pads := self.body.shapes.value(others[0])) is not None:
            places = {
                view.axis(number): list(pair) for number, pair in enumerate(pads) if any(pair)
            }
            known = all(isinstance(size, int) for pair in places.values() for size in pair)
            pads = [places.get(at, [0, 0]) for at in range(len(view.source))]
            return [view.x, self._like(node, pads)] if known and None not in places else None
        return None

    def _beside(self, node: Node, view: View, refs: list[Ref]) -> list[Ref] | None:
        """Operands that lie beside the view, as they lie beside x; None where one cannot."""
        operands, write = [], self.body.writer(node.name)
        is_constant = self.body.constants.is_constant
        for ref in refs:
            other = self.view(ref)
            if other and self._are_alike(view, other) and not self._has_fewer(ref, other, view):
                operands.append((other.x, None, []))
            elif is_constant(ref) or self._takes(ref, self.body):
                shape = self.body.shapes.shape(ref)
                operands.append((ref, *self._lay_beside(view, shape, is_constant(ref))))
            elif view.node.op == "Squeeze" and self.body.shapes.equal(ref, view.node.ref):
                operands.append((self._expanded(ref, view), None, []))
            else:
                return None
        if any(views is None for _, _, views in operands):
            return None
        for n, (ref, ones, views) in enumerate(operands):
            if ones is not None:
                ref = write.add(f"x/{n}/repeated", "Mul", ref, ones)
            operands[n] = write_views(views, f"x/{n}", ref, write)
        return operands

    def _has_fewer(self, ref: Ref, other: View, view: View) -> bool:
        """Whether another view is of one sample of x, and may as well be repeated for all."""
        samples, all_samples = (self.body.shapes.shape(each.x)[0] for each in (other, view))
        return samples == 1 != all_samples and self._takes(ref, self.body)

    def _expanded(self, ref: Ref, view: View) -> Ref:
        """A tensor with the axis that the view is without; one ExpandDims serves all readers."""
        (axis,) = view.node.attr["squeeze_dims"].list.i
        for reader, index in self.body.view.consumers(ref):
            is_one = index == 0 and reader.op == "ExpandDims"
            if is_one and self.body.shapes.number(reader.inputs[1]) == axis:
                return reader.ref
        return self.body.writer(ref.node).add("expanded", "ExpandDims", ref, axis)

    def _are_alike(self, view: View, other: View) -> bool:
        """Whether another view is of the same kind, of a tensor that is broadcast to x."""
        axes = view_axes(other.node, view.source, self.body)
        shapes = [self.body.shapes.shape(each.node.ref) for each in (view, other)]
        for number, (axis, wanted) in enumerate(zip(axes or (), view.axes, strict=bool(axes))):
            if view.axis(number) is None and shapes[0][number] != shapes[1][number]:
                return False
            if leaves(axis) != leaves(wanted) and (leaves(axis) or view.axis(number) is None):
                return False
        return axes is not None

    def _lay_beside(self, view: View, shape: tuple | None, is_constant: bool) -> tuple:
        """How an operand of that shape lies beside x: ones that repeat it, if any, and the views.

        What has a part of what counts along an axis of x is repeated along the other parts, by
        ones; numbers of samples are those of all channels, too.
        """
        if shape is None or len(shape) > len(view.axes):
            return None, None
        missing = len(view.axes) - len(shape)
        axes, whole = (list(map(leaves, x)) for x in (view.axes, view.source))
        pairs = list(zip(axes, (1,) * missing + shape, strict=True))
        for number, (axis, size) in enumerate(pairs):
            if size != 1 and not axis:  # The result is larger than x.
                if (at := view.axis(number)) is None:
                    return None, None
                axis.extend(view.source[at])
                whole[at] = axis
        counted, ones = {leaf for axis, size in pairs if size != 1 for leaf in axis}, None
        parts = {leaf for axis in whole if counted & {*axis} for leaf in axis}
        if shape and not is_constant:
            parts |= {*whole[-1], *(leaf for leaf in whole[0] if isinstance(leaf.size, int))}
        if parts - counted:
            ones = [size_of(x.size for x in axis) if {*axis} & parts else 1 for axis in axes]
            ones = [1 if size != 1 else n for n, (_, size) in zip(ones, pairs, strict=True)]
            if not all(isinstance(size, int) for size in ones):
                return None, None
            sizes = [size if n == 1 else n for n, (_, size) in zip(ones, pairs, strict=True)]
            missing, pairs, ones = 0, list(zip(axes, sizes, strict=True)), np.ones(ones)
        counted_along = [[] if size == 1 else axis for axis, size in pairs[missing:]]
        return ones, views_beside(counted_along, [size for _, size in pairs[missing:]], whole)

    def _reduce(self, node: Node, view: View) -> None:
        """What a reduction leaves of x has to have the order that it has in the view."""
        body, write, numbers = self.body, self.body.writer(node.name), self.body.shapes.numbers
        if (numbers := numbers(node.inputs[1])) is None or node.inputs[0] != view.node.ref:
            return
        gone, keeps = {number % len(view.axes) for number in numbers}, node.attr["keep_dims"].b
        inside = {leaf for number in gone for leaf in leaves(view.axes[number])}
        over = [at for at, run in enumerate(map(leaves, view.source)) if run and {*run} <= inside]
        kept = [view.axis(number) for number in range(len(view.axes)) if number not in gone]
        if view.node.op == "Reshape":  # over rows and columns, as ops of ours do, and then the rest
            over = [at for at in over if 0 < at < len(view.source) - 1]
            inside = {leaf for at in over for leaf in leaves(view.source[at])}
            shape = zip(map(leaves, view.axes), body.shapes.shape(view.node.ref), strict=True)
            left = tuple(1 if run and {*run} <= inside else size for run, size in shape)
            if not over or not self.tells(left):
                return None
            done = write.add("x/planes", node.op, view.x, over, keep_dims=True)
            sizes = self.sizes(left, f"{node.name}/x/shape")
            inputs = [write.add("x", "Reshape", done, sizes, shape=left), node.inputs[1]]
        elif keeps:
            return self._work_below(node, view, [view.x, self._like(node, over)]) if over else None
        else:
            over = [at for at in range(len(view.source)) if at not in kept]
            inputs = kept == sorted(kept) and [view.x, self._like(node, over)]
        if inputs:
            sources = [ref.node for ref in node.inputs]
            body.view.set_inputs(node, inputs)
            body.view.remove_dead(sources)
        return None

    def _like(self, node: Node, values) -> Ref:
        """Numbers of the type of the node's last input, which they replace."""
        kind = dtype(self.body.view, node.inputs[-1])
        return self.body.writer(node.name).constant("x/numbers", values, kind)


def _kept(view: View) -> dict:
    """The attributes of the same view of another tensor."""
    keys = {"squeeze_dims"} & attribute_types(view.node.op).keys()
    return {key: view.node.attr[key] for key in keys}
