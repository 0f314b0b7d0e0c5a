"""The maximum, mean or sum of each plane."""

from dataclasses import dataclass

from ....graph import Body, Node, Writer
from ....ops.records import BLOCKED, NHWC, GlobalPool, PlaneSum, Reorder
from ...context import Context
from ...rules import Found

_KINDS = {"Max": "max", "Mean": "avg"}
ROOTS = (*_KINDS, "Sum")
NAMED = ("keep_dims",)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """A Mean, Max or Sum over height and width."""
    src = node.inputs[0]
    channels = body.shapes.channels(src)
    if channels is None:
        return "the channels are not known"
    if not reduces_planes(node, body):
        return "it reduces other axes than height and width"
    if node.op == "Sum":
        found = Found if node.attr["keep_dims"].b else _FoundSum
        payload = PlaneSum(origin=node.name, channels=channels)

        def prepared(write: Writer) -> dict:
            return {"src": src, "reduction_indices": write.constant("axes", (2, 3))}

        return found(payload, {"src": src}, node.name, prepare=prepared)
    payload = GlobalPool(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        dst_layout=BLOCKED if node.attr["keep_dims"].b else "nc",
    )
    return Found(payload, {"src": src}, node.name)


@dataclass(frozen=True, kw_only=True)
class _FoundSum(Found):
    """Sums whose rows and columns are dropped."""

    def put(self, body: Body) -> Node:
        write, (n, _, _, c) = body.writer(self.root), body.shapes.shape(self.inputs["src"])
        made = write.plan("planes", self.payload, self.prepare(write), shape=(n, 1, 1, c))
        layouts = {"src_layout": BLOCKED, "dst_layout": NHWC}
        plain = Reorder(origin=self.root, channels=c, **layouts)
        made = write.plan("plain", plain, {"src": made}, shape=(n, 1, 1, c))
        write.put("Squeeze", made, squeeze_dims=[1, 2])
        return body.view.producer(made)


def reduces_planes(node: Node, body: Body) -> bool:
    """Whether it reduces height and width of [N, H, W, C], and nothing else."""
    axes = body.shapes.numbers(node.inputs[1])
    is_picture = body.shapes.rank(node.inputs[0]) == 4
    return is_picture and axes is not None and sorted(axis % 4 for axis in axes) == [1, 2]
