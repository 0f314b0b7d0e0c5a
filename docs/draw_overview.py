"""Draws docs/overview.svg, "how it works in one picture": `python docs/draw_overview.py`."""

import pathlib
import sys

import matplotlib
from matplotlib import pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

matplotlib.rcParams |= {
    "svg.fonttype": "none",
    "svg.hashsalt": "tf_blockdnn",
    "font.family": "sans-serif",
    "font.size": 9,
}

INK, SOFT, PLAIN, OURS, TAIL = "#22303c", "#7b8894", "#e8ebee", "#cfe3f7", "#f7f3e3"
CHANNELS, BLOCK = 20, 16


def box(axes, x, y, width, height, lines, color, edge=INK):
    """A rounded box with its lower left corner at (x, y), text lines from the top."""
    shape = FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0,rounding_size=0.08", fc=color, ec=edge, lw=0.9
    )
    axes.add_patch(shape)
    middle = y + height / 2 + 0.11 * (len(lines) - 1)
    for index, line in enumerate(lines):
        axes.text(x + width / 2, middle - 0.22 * index, line, ha="center", va="center", color=INK)


def arrow(axes, start, end, text="", color=INK):
    """An arrow with a small label above its middle."""
    style = {"arrowstyle": "-|>", "color": color, "lw": 1, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)
    middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2 + 0.07)
    axes.text(*middle, text, ha="center", va="bottom", color=SOFT, fontsize=7)


def heading(axes, x, y, title, text):
    axes.text(x, y, title, fontweight="bold", color=INK, va="center")
    axes.text(x, y - 0.25, text, color=SOFT, fontsize=8, va="center")


def draw_given(axes, y):
    """The graph as TensorFlow has it: one op a box, every tensor NHWC through memory."""
    heading(axes, 0, y + 0.95, "Your model", "one op a box, tensors in NHWC")
    names = ["Conv2D", "batch norm", "ReLU", "Conv2D", "batch norm", "Add", "ReLU", "Mean"]
    for index, name in enumerate(names):
        x = 0.55 + 1.32 * index
        arrow(axes, (x - 0.3, y + 0.2), (x, y + 0.2))
        box(axes, x, y, 1.02, 0.4, [name], PLAIN)
    skip, add = 0.55 + 1.32 * 2 + 1.02 + 0.15, 0.55 + 1.32 * 5 + 0.5
    axes.plot([skip, skip, add, add], [y + 0.2, y + 0.6, y + 0.6, y + 0.4], color=INK, lw=1)


def draw_result(axes, y):
    """The graph after optimize."""
    heading(
        axes,
        0,
        y + 1.42,
        "optimize(model)",
        "the same function: whole chains in one op, blocked tensors",
    )
    arrow(axes, (0.2, y + 0.42), (0.75, y + 0.42), "NHWC")
    box(axes, 0.75, y, 2.2, 0.85, ["convolution", "+ shift", "ReLU"], OURS)
    arrow(axes, (2.95, y + 0.42), (4.35, y + 0.42), "nChw16c")
    box(axes, 4.35, y, 3.0, 0.85, ["convolution", "+ shift + shortcut", "ReLU"], OURS)
    arrow(axes, (7.35, y + 0.42), (8.75, y + 0.42), "nChw16c")
    box(axes, 8.75, y, 1.5, 0.85, ["average", "pooling"], OURS)
    arrow(axes, (10.25, y + 0.42), (10.9, y + 0.42), "NC")
    axes.plot([3.2, 3.2, 5.85], [y + 0.42, y + 1.02, y + 1.02], color=INK, lw=1)
    arrow(axes, (5.85, y + 1.02), (5.85, y + 0.85))


def draw_blocks(axes, x, y):
    """nChw16c of a tensor with 20 channels: two blocks, the second with a zero tail."""
    heading(axes, x, y + 2.0, "nChw16c", f"{CHANNELS} channels: two blocks of 16, the tail is zero")
    cell = 0.2
    for block in range(2):
        top = y + 1.35 - 0.85 * block
        for pixel in range(3):
            for lane in range(BLOCK):
                channel = block * BLOCK + lane
                corner = (x + 0.62 + lane * cell, top - pixel * cell)
                tail = channel >= CHANNELS
                color = TAIL if tail else (OURS if pixel % 2 == 0 else "#e2eefa")
                axes.add_patch(Rectangle(corner, cell, cell, fc=color, ec="white", lw=0.8))
                text = "0" if tail else str(channel)
                center = (corner[0] + cell / 2, corner[1] + cell / 2)
                axes.text(*center, text, ha="center", va="center", fontsize=5.5, color=INK)
            axes.text(
                x + 0.55, top - (pixel - 0.5) * cell, f"pixel {pixel}", ha="right", va="center",
                fontsize=6.5, color=SOFT,
            )  # fmt: skip
    axes.text(
        x + 0.62 + 8 * cell, y - 0.2, "one row: one AVX-512 register, or two of AVX2",
        ha="center", va="center", fontsize=7.5, color=SOFT,
    )  # fmt: skip


def draw_kernel(axes, x, y):
    """What happens to an accumulator before it is stored."""
    heading(axes, x, y + 2.0, "Inside one op", "sums stay in registers until all is done")
    steps = ["src x weights, summed", "+ shift", "+ shortcut", "ReLU", "one store"]
    for index, step in enumerate(steps):
        top = y + 1.25 - 0.36 * index
        box(axes, x, top, 2.3, 0.27, [step], OURS if index < 4 else PLAIN)


def draw_machines(axes, x, y):
    """One file, many machines."""
    heading(axes, x, y + 2.0, "One SavedModel", "weights lie plain in it, packed at first use")
    box(axes, x, y + 0.35, 1.15, 0.6, ["plain", "weights"], PLAIN)
    for index, isa in enumerate(["avx512", "avx2", "generic"]):
        top = y + 1.17 - 0.58 * index
        box(axes, x + 2.1, top, 1.05, 0.4, [isa], OURS)
        arrow(axes, (x + 1.15, y + 0.65), (x + 2.1, top + 0.2))


def main(path: pathlib.Path) -> None:
    """Writes the picture to `path`, in the format of its suffix."""
    figure = plt.figure(figsize=(11.2, 6.1))
    axes = figure.add_axes([0.01, 0.01, 0.98, 0.98])
    axes.set(xlim=(-0.1, 11.1), ylim=(-0.4, 5.65))
    axes.axis("off")
    draw_given(axes, 4.35)
    draw_result(axes, 2.6)
    draw_blocks(axes, 0, 0)
    draw_kernel(axes, 4.7, 0)
    draw_machines(axes, 7.75, 0)
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, facecolor="white", metadata=metadata)


if __name__ == "__main__":
    default = pathlib.Path(__file__).with_name("overview.svg")
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default)
