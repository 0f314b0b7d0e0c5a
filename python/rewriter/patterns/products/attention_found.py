"""An attention that was found, and what has to stand before its op."""

from dataclasses import dataclass, replace

from tensorflow.core.framework import types_pb2

from ....graph import INT32, GraphView, Node, Ref, Writer, dtype
from ....ops.records import BIAS_ROLES
from ...rules import Found
from .attention_masks import Bias


@dataclass(frozen=True)
class FoundAttention(Found):
    """An attention, and who asks for the shape of its scores: masks of open sizes do."""

    shapes: tuple[Node, ...] = ()
    axes: tuple[str, str] = ("", "")  # of q and k
    is_grouped: bool = False  # a mask of rank 5 is [B, 1, 1, T, S]
    biases: tuple[Bias, ...] = ()
    head_scale: Ref | None = None  # what multiplies the scores of each head
    inverted: bool = False  # the mask is true where scores are masked

    def node(self, view: GraphView) -> Node:
        write, inputs = Writer(view, self.root), dict(self.inputs)
        if mask := inputs.get("mask"):
            if self.is_grouped:
                mask = write.add("mask", "Squeeze", mask, squeeze_dims=[1])
            if dtype(view, mask) != types_pb2.DT_BOOL:
                mask = write.add("mask", "Cast", mask, DstT=types_pb2.DT_BOOL)
            inputs["mask"] = write.add("seen", "LogicalNot", mask) if self.inverted else mask
        for role, bias in zip(BIAS_ROLES, self.biases, strict=False):
            inputs[role] = self._bias(bias, Writer(view, f"{self.root}/{role}"))
        if self.head_scale is not None:
            shape = [-1 if axis == "n" else 1 for axis in self.axes[0]]
            scale = write.add("scale", "Reshape", self.head_scale, shape)
            inputs["q"] = write.add("scaled", "Mul", inputs["q"], scale)
        for shape in self.shapes:
            view.replace_uses(shape.ref, self._shape_of_scores(shape, view))
            view.remove_dead([shape.name])
        return Found.node(replace(self, inputs=inputs), view)

    @staticmethod
    def _bias(bias: Bias, write: Writer) -> Ref:
        ref = bias.ref
        if bias.shape is not None:
            ref = write.add("of_heads", "Reshape", ref, bias.shape)
        if bias.order is not None:
            ref = write.add("turned", "Transpose", ref, bias.order)
        return write.add("scaled", "Mul", ref, bias.factor) if bias.factor != 1.0 else ref

    def _shape_of_scores(self, like: Node, view: GraphView) -> Ref:
        """The same shape out of those of q and k."""
        q, k = self.axes
        places = [q.index(axis) for axis in ("bnt" if "n" in q else "bt")]
        places.append(len(q) + k.index("t"))
        write, kind = Writer(view, like.name), like.attr["out_type"].type or INT32
        sizes = [write.add(role, "Shape", self.inputs[role], out_type=kind) for role in "qk"]
        return write.add("scores", "GatherV2", write.add("sizes", "ConcatV2", sizes, 0), places, 0)
