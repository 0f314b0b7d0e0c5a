"""Draws docs/convolution.svg, the way of one convolution: `python docs/draw_convolution.py`."""

import html
import pathlib

# (what happens, how often, where, lines of detail), from TensorFlow's graph down to the registers.
STEPS = (
    (
        "Rewriter",
        "once",
        "python/rewriter",
        "Conv2D, BatchNorm, Add and Relu become one BlockdnnConv.",
        "The normalisation goes into weights and shift; Add and Relu are its post-ops.",
    ),
    (
        "Plan",
        "once a shape",
        "cc/core/conv/conv_plan.cc",
        "Checks the shape, asks each algorithm for its cost and takes the cheapest.",
        "The plan has tile, strips, work items and the size of the scratchpad.",
    ),
    (
        "Pack",
        "once a model",
        "cc/core/conv/direct/direct_pack.cc",
        "Weights are brought into the order in which the tile reads them,",
        "in huge pages that ops with the same weights share.",
    ),
    (
        "Driver",
        "every call",
        "cc/core/conv/direct/direct_driver.cc",
        "A work item is some output channels of some output rows.",
        "Each thread begins with its own part; idle threads steal from the end of others'.",
    ),
    (
        "Strip",
        "every work item",
        "cc/core/conv/direct/direct_strip.cc",
        "The source of a few output rows is copied to the scratchpad, once a kernel column,",
        "so that pixels follow each other for every weight. It fits L2. 1x1 needs no copy.",
    ),
    (
        "Tile",
        "14 pixels x 32 channels",
        "cc/core/gemm/tiles",
        "28 accumulators stay in registers while the loop runs over kernel and channels:",
        "load a vector of weights, broadcast a source value, multiply and add.",
    ),
    (
        "Epilogue",
        "every tile",
        "cc/core/gemm/tiles",
        "Shift, shortcut and ReLU are applied to the accumulators in registers;",
        "then the tile is stored once, as nChw16c, with zeros in the tail.",
    ),
)
WIDTH, STEP, BOX = 860, 88, 68
STYLE = """
text { font: 13px sans-serif; fill: #22303c; }
.name { font-weight: bold; font-size: 15px; }
.soft { fill: #66747f; font-size: 12px; }
.page { fill: #ffffff; }
.box { fill: #e8f1fb; stroke: #9db8d6; }
.arrow { stroke: #66747f; stroke-width: 1.5; fill: none; }
.head { fill: #66747f; }
@media (prefers-color-scheme: dark) {
  text { fill: #e3e7ea; } .soft { fill: #a9b4bc; } .page { fill: #1e2129; }
  .box { fill: #26384c; stroke: #4a6a8c; } .arrow { stroke: #a9b4bc; } .head { fill: #a9b4bc; }
}
"""


def picture() -> str:
    """The SVG."""
    height = len(STEPS) * STEP + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The way of one convolution, from TensorFlow's graph to the registers</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="6"/>',
    ]
    for index, (name, often, where, *details) in enumerate(STEPS):
        top = 12 + index * STEP
        parts.append(
            f'<rect class="box" x="12" y="{top}" width="{WIDTH - 24}" height="{BOX}" rx="6"/>'
        )
        texts = [(28, 28, "name", name), (28, 50, "soft", often)]
        texts += [(190, 24 + 19 * line, "", text) for line, text in enumerate(details)]
        texts.append((190, 60, "soft", where))
        parts += [
            f'<text class="{kind}" x="{x}" y="{top + y}">{html.escape(text)}</text>'
            for x, y, kind, text in texts
        ]
        if index:
            parts.append(f'<path class="arrow" d="M90 {top - STEP + BOX} V{top - 7}"/>')
            parts.append(f'<path class="head" d="M85 {top - 8} h10 l-5 8 z"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("convolution.svg").write_text(picture())
