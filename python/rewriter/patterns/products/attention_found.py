"""An attention that was found, and what has to stand before its op."""

from dataclasses import dataclass, replace

from tensorflow.core.framework import types_pb2

from ....graph import INT32, GraphView, Node, Ref, constant_node, dtype, gathered, make_node
from ....ops.records import BIAS_ROLES
from ..found import Found
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
        if self.is_grouped and "mask" in self.inputs:
            name, dims = f"{self.root}/mask", {"squeeze_dims": [1], "T": types_pb2.DT_BOOL}
            mask = view.add(make_node(name, "Squeeze", [self.inputs["mask"]], **dims)).ref
            inputs = {**self.inputs, "mask": mask}
            return replace(self, inputs=inputs, is_grouped=False).node(view)
        if self.biases:
            inputs = dict(self.inputs)
            for role, bias in zip(BIAS_ROLES, self.biases, strict=False):
                inputs[role] = self._bias(bias, f"{self.root}/{role}", view)
            return replace(self, inputs=inputs, biases=()).node(view)
        if "mask" in self.inputs and dtype(view, self.inputs["mask"]) != types_pb2.DT_BOOL:
            mask = self._cast(self.inputs["mask"], f"{self.root}/mask", view)
            return replace(self, inputs={**self.inputs, "mask": mask}).node(view)
        if "mask" in self.inputs and self.inverted:
            negated = make_node(f"{self.root}/seen", "LogicalNot", [self.inputs["mask"]])
            inputs = {**self.inputs, "mask": view.add(negated).ref}
            return replace(self, inputs=inputs, inverted=False).node(view)
        if self.head_scale is not None:
            q = self._scaled_queries(view)
            return replace(self, inputs={**self.inputs, "q": q}, head_scale=None).node(view)
        for shape in self.shapes:
            view.replace_uses(shape.ref, self._shape_of_scores(shape, view))
            view.remove_dead([shape.name])
        return super().node(view)

    def _scaled_queries(self, view: GraphView) -> Ref:
        name, shape = f"{self.root}/scaled", [-1 if axis == "n" else 1 for axis in self.axes[0]]
        shape = view.add(constant_node(f"{name}/shape", shape)).ref
        scale = [self.head_scale, shape]
        scale = view.add(make_node(f"{name}/scale", "Reshape", scale, T=types_pb2.DT_FLOAT)).ref
        scaled = [self.inputs["q"], scale]
        return view.add(make_node(name, "Mul", scaled, T=types_pb2.DT_FLOAT)).ref

    @staticmethod
    def _cast(mask: Ref, name: str, view: GraphView) -> Ref:
        types = {"SrcT": dtype(view, mask), "DstT": types_pb2.DT_BOOL}
        return view.add(make_node(name, "Cast", [mask], **types)).ref

    @staticmethod
    def _bias(bias: Bias, name: str, view: GraphView) -> Ref:
        ref, real = bias.ref, types_pb2.DT_FLOAT
        if bias.shape is not None:
            sizes = view.add(constant_node(f"{name}/shape", bias.shape)).ref
            ref = view.add(make_node(f"{name}/of_heads", "Reshape", [ref, sizes], T=real)).ref
        if bias.order is not None:
            order = view.add(constant_node(f"{name}/order", bias.order)).ref
            ref = view.add(make_node(f"{name}/turned", "Transpose", [ref, order], T=real)).ref
        if bias.factor != 1.0:
            factor = view.add(constant_node(f"{name}/factor", bias.factor, real)).ref
            ref = view.add(make_node(name, "Mul", [ref, factor], T=real)).ref
        return ref

    def _shape_of_scores(self, like: Node, view: GraphView) -> Ref:
        """The same shape out of those of q and k."""
        name, dtype = like.name, like.attr["out_type"].type or types_pb2.DT_INT32
        q, k = self.axes
        places = [q.index(axis) for axis in ("bnt" if "n" in q else "bt")]
        places.append(len(q) + k.index("t"))
        axis = view.add(constant_node(f"{name}/axis", 0)).ref
        indices = view.add(constant_node(f"{name}/places", places)).ref
        sizes = [self._shape(f"{name}/{role}", self.inputs[role], like, view) for role in "qk"]
        inputs = [*sizes, axis]
        both = view.add(make_node(f"{name}/sizes", "ConcatV2", inputs, T=dtype, Tidx=INT32)).ref
        return view.add(gathered(f"{name}/scores", both, indices, axis, dtype)).ref

    @staticmethod
    def _shape(name: str, ref: Ref, like: Node, view: GraphView) -> Ref:
        types = {key: like.attr[key] for key in ("T", "out_type")}
        return view.add(make_node(name, "Shape", [ref], **types)).ref
