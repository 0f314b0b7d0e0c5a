"""Attention: softmax(scale q k^T + biases) v, for each head."""

from dataclasses import dataclass
from typing import ClassVar

from ....graph import Ref
from ....layout import NHWC
from ..bundle import Bundle
from ..primitive import Layout, Primitive

MAX_BIASES = 2  # kMaxAttentionBiases in cc/core/attention


@dataclass(frozen=True, kw_only=True)
class Attention(Primitive):
    """Reads q, k and v, then "bias0", "bias1" and "mask", where its node has them.

    Attributes:
        channels: of a row of v.
        head_size: of a row of q and k.
        layouts: "BTNH" or "BNTH" of q, k, v and the result.
        masked: the score where the mask is false.
        zero_masked: whether the weight is 0 there whatever the row has.
    """

    op: ClassVar[str] = "BlockdnnAttention"
    takes_scratchpad: ClassVar[bool] = True
    head_size: int
    layouts: tuple[str, str, str, str]
    scale: float
    causal: bool
    masked: float
    zero_masked: bool

    @property
    def dst_layout(self) -> Layout:
        return NHWC

    def layout_of(self, role: str) -> Layout:
        return NHWC

    def keys_axis(self, rank: int) -> int:
        """Of k, which has this rank."""
        return 2 if rank == 4 and self.layouts[1] == "BNTH" else 1

    def _kind(self) -> str:
        causal = ", causal" if self.causal else ""
        return f"heads of {self.head_size} and {self.channels}{causal}, {' '.join(self.layouts)}"

    def attributes(self) -> dict:
        names = ("q_layout", "k_layout", "v_layout", "dst_layout")
        return dict(zip(names, self.layouts, strict=True)) | {
            "scale": float(self.scale),
            "causal": self.causal,
            "masked_value": float(self.masked),
            "zero_masked": self.zero_masked,
        }

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        biases = [inputs[role] for role in ("bias0", "bias1") if role in inputs]
        masks = [inputs["mask"]] if "mask" in inputs else []
        counts = {"num_biases": len(biases), "num_masks": len(masks)}
        given = [inputs["q"], inputs["k"], inputs["v"], *biases, *masks]
        return self.attributes() | counts, given
