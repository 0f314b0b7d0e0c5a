"""A 1x1 convolution and the depthwise one that reads it, as one op."""

from dataclasses import dataclass
from typing import ClassVar

from ....graph import Ref
from ..bundle import Bundle
from ..primitive import Primitive, padding_attributes
from ..steps import write_chain
from .conv import Conv


@dataclass(frozen=True, kw_only=True)
class ConvDepthwise(Primitive):
    """A 1x1 convolution and the depthwise one that alone reads it, in blocks.

    Attributes:
        first, depthwise: the two; the steps of the first read no tensors. `steps` are those
            of the second.
    """

    op: ClassVar[str] = "BlockdnnConvDepthwise"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    first: Conv
    depthwise: Conv
    algorithm: str = "auto"

    def details(self) -> str:
        return f"{self.first.details()}; then {self.depthwise.details()}"

    def attributes(self) -> dict:
        return {
            "channels": self.first.in_channels,
            "weights_shape": list(self.first.weights.shape),
            "depthwise_weights_shape": list(self.depthwise.weights.shape),
            "strides": list(self.depthwise.strides),
            "dilations": list(self.depthwise.dilations),
            "algorithm": self.algorithm,
            "constant_weights": True,
            "src_blocks": list(self.first.src_blocks),
        } | padding_attributes(self.depthwise)

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        attributes, all_args = self.attributes(), []
        for prefix, conv in {"": self.first, "depthwise_": self.depthwise}.items():
            attributes[f"{prefix}weights_offset"] = conv.add_weights(bundle)
            attributes[f"{prefix}post_ops"], args = write_chain(conv.chain, inputs, bundle)
            attributes[f"num_{prefix}args"] = len(args)
            all_args += args
        return attributes, [inputs["src"], bundle.tensor, bundle.tensor, *all_args]
