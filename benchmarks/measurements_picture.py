"""Draws how many times longer others take than tf_blockdnn: a panel for each CPU family."""

from __future__ import annotations

import pathlib

import matplotlib
from matplotlib.figure import Figure
from measurements import OURS, fastest, is_ours, is_tensorflow, network, speedup, title

INK, SOFT, GRID, ACCENT = "#22303c", "#66747f", "#e3e7ea", "#c8553d"
MARKS = {  # A color and a shape of its own, for readers who do not see colors and for print.
    "TensorFlow": ("#22303c", "s"),
    "ONNX Runtime": ("#3b7dd8", "o"),
    "OpenVINO": ("#7a4fb5", "D"),
    "LiteRT": ("#2e9e6b", "^"),
    "ncnn": ("#d99a1c", "v"),
}
OTHER = ("#8fa3ad", "P")


def points(result: dict) -> dict[str, float]:
    """{library: its time divided by ours}, TensorFlow in its faster setting only."""
    best = fastest(result, is_tensorflow)
    return {
        "TensorFlow" if is_tensorflow(peer) else title(peer): speedup(result, peer)
        for peer, row in result["peers"].items()
        if "median_ms" in row and not is_ours(peer) and (peer == best or not is_tensorflow(peer))
    }


def draw(documents: list[dict], path: pathlib.Path, fingerprint: str) -> None:
    """Writes an SVG of all results at batch 1 that have times of ours."""
    style = {
        "svg.fonttype": "none",
        "svg.hashsalt": "tf_blockdnn",
        "font.family": "sans-serif",
        "font.size": 10,
        "text.color": INK,
        "xtick.color": SOFT,
        "ytick.color": INK,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(10, 3.9), facecolor="white")
        panels = figure.subplots(1, len(documents), sharex=True, sharey=True, squeeze=False)[0]
        for panel, document in zip(panels, documents, strict=True):
            _panel(panel, document)
        panels[0].set_xlim(0.8, max(panel.dataLim.xmax for panel in panels) + 0.25)
        _legend(figure, panels)
        figure.subplots_adjust(left=0.125, right=0.985, top=0.80, bottom=0.13, wspace=0.06)
        figure.savefig(
            path, format="svg", metadata={"Date": None, "Description": f"data {fingerprint}"}
        )


def _panel(panel, document: dict) -> None:
    results = [r for r in document["results"] if r["batch"] == 1 and OURS in r["peers"]]
    for place, result in enumerate(results):
        values = points(result)
        panel.plot([1, max(values.values())], [place, place], color=GRID, lw=5, zorder=1)
        for name, value in values.items():
            color, shape = MARKS.get(name, OTHER)
            panel.scatter(
                *(value, place),
                c=color,
                marker=shape,
                s=58,
                label=name,
                zorder=3,
                ec="white",
                lw=0.9,
            )
    panel.axvline(1, color=ACCENT, lw=3, zorder=2)
    panel.set_yticks(range(len(results)), [network(r["model"]) for r in results])
    panel.set_ylim(len(results) - 0.4, -0.6)
    panel.xaxis.set_major_formatter("{x:.0f}x")
    panel.xaxis.set_major_locator(matplotlib.ticker.MultipleLocator(1))
    panel.tick_params(length=0)
    panel.grid(axis="x", color=GRID, zorder=0)
    panel.spines[:].set_visible(False)
    panel.set_title(document["title"], loc="left", fontsize=11, fontweight="bold")
    panel.set_xlabel("time of one call, as a multiple of tf_blockdnn's", color=SOFT)


def _legend(figure, panels) -> None:
    shown: dict = {}
    for panel in panels:
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
            shown.setdefault(name, handle)
    names = [name for name in MARKS if name in shown] + [n for n in shown if n not in MARKS]
    line = matplotlib.lines.Line2D([], [], color=ACCENT, lw=3)
    figure.legend(
        [line, *(shown[name] for name in names)],
        ["tf_blockdnn", *names],
        loc="upper center",
        ncols=len(names) + 1,
        frameon=False,
        bbox_to_anchor=(0.5, 1.0),
    )
