"""One self-contained HTML page: the graph of a function before and after it was rewritten."""

from __future__ import annotations

import dataclasses
import html
import pathlib
from collections.abc import Mapping

from .rewriter.capture import capture
from .rewriter.summary import brief, common_prefix

_ROW, _LANE, _MOST_LANES = 24, 12, 8  # pixels, pixels, lines side by side
# What is no computation, or what both graphs only name.
_SILENT = frozenset(("Const", "NoOp", "ReadVariableOp", "Identity", "VarHandleOp"))


@dataclasses.dataclass
class Row:
    """One op of a drawn graph.

    Attributes:
        node, op: its name and type.
        name: the part of the name that tells it from others.
        kind: "input", "ours", "reorder", "left", "unfused" or "plain".
        note: a few words behind the name.
        inputs: rows that it reads.
        lane: the line that it stands on.
    """

    node: str
    op: str
    name: str
    kind: str
    note: str
    inputs: list[int]
    lane: int = 0


def write_page(path: pathlib.Path, title: str, originals: Mapping, functions: Mapping, report):
    """Writes the page for all signatures that were rewritten, each distinct graph once.

    Args:
        path: the file.
        title: what was rewritten.
        originals, functions: signature name -> ConcreteFunction, before and after.
        report: the SavedModelReport.
    """
    names: dict[int, list[str]] = {}
    for name, one in report.signatures.items():
        names.setdefault(id(one), []).append(name)
    parts = []
    for same in names.values():
        one = report.signatures[same[0]]
        after = rows_of(functions[same[0]], one)
        before = rows_of(originals[same[0]], one, kept={row.node for row in after})
        parts.append(section(", ".join(same), one, before, after))
    path.write_text(_PAGE.format(title=html.escape(title), style=_STYLE, body="\n".join(parts)))


def rows_of(concrete, report, kept: set[str] | None = None) -> list[Row]:
    """The ops of a function in a runnable order, calls inlined.

    Args:
        kept: for the original: the nodes that are in the result, too. The others became part of
            ops of ours.
    """
    cut = common_prefix(report)
    reasons, unfused = dict(report.declined), dict(report.unfused)
    details = {item.node: item for item in report.converted}
    causes = dict(zip((t for t, _ in report.reorders), report.reorder_causes, strict=False))
    rows: list[Row] = []
    place: dict[str, list[int]] = {}  # node -> the rows that stand for it
    for node in capture(concrete).main.view.topological():
        sources = dict.fromkeys(row for ref in node.inputs for row in place.get(ref.node, ()))
        is_input = node.op == "Placeholder" and _is_input(node)
        if node.op in _SILENT or not (sources or is_input):  # names a tensor, or is constant
            place[node.name] = list(sources)
            continue
        kind, note = "plain", ""
        if node.op == "Placeholder":
            kind = "input"
        elif node.op == "BlockdnnReorder":
            kind, note = "reorder", causes.get(str(node.inputs[0]), "")
            note = note and f"because of {note.replace(cut, '') if cut else note}"
        elif node.op.startswith("Blockdnn"):
            kind, item = "ours", details.get(node.name)
            note = item.details if item else ""
        elif node.name in reasons:
            kind, note = "left", reasons[node.name]
        elif node.name in unfused:
            kind, note = "unfused", unfused[node.name]
        elif kept is not None and node.name not in kept:
            kind = "ours"
        place[node.name] = [len(rows)]
        rows.append(Row(node.name, node.op, brief(node.name, cut), kind, note, list(sources)))
    _assign_lanes(rows)
    return rows


def _is_input(node) -> bool:
    return node.attr["dtype"].type != _RESOURCE


_RESOURCE = 20  # DT_RESOURCE: the handle of a variable


def _assign_lanes(rows: list[Row]) -> None:
    """Gives each row a line, which is free again below the last row that reads it."""
    last = {index: index for index in range(len(rows))}
    for index, row in enumerate(rows):
        for source in row.inputs:
            last[source] = index
    busy: dict[int, int] = {}  # lane -> the row that stands on it
    for index, row in enumerate(rows):
        done = [lane for lane, owner in busy.items() if last[owner] <= index]
        for lane in done:
            del busy[lane]
        free = (lane for lane in range(len(rows)) if lane not in busy)
        row.lane = min(next(free), _MOST_LANES - 1)
        if last[index] > index:
            busy[row.lane] = index


def section(name: str, report, before: list[Row], after: list[Row]) -> str:
    """One graph: the summary, then both drawings side by side."""
    return (
        f"<section><h2>{html.escape(name)}</h2><pre>{html.escape(report.summary())}</pre>"
        f'<div class="both">{_column("before", before)}{_column("after", after)}</div></section>'
    )


def _column(heading: str, rows: list[Row]) -> str:
    width = _LANE * (2 + max((row.lane for row in rows), default=0))
    items = "".join(map(_item, rows))
    return (
        f'<div class="graph"><h3>{heading} <small>{len(rows)} ops</small></h3>'
        f'<div class="rows" style="padding-left:{width}px">{_lines(rows, width)}'
        f"<ol>{items}</ol></div></div>"
    )


def _item(row: Row) -> str:
    op, name, note = (html.escape(text) for text in (row.op, row.name, row.note))
    title = html.escape(f"{row.node}: {row.op} {row.note}", quote=True)
    return (
        f'<li class="{row.kind}" title="{title}"><b>{op.removeprefix("Blockdnn")}</b>'
        f" <span>{name}</span> <i>{note}</i></li>"
    )


def _lines(rows: list[Row], width: int) -> str:
    """The edges as one picture to the left of the rows."""
    paths, dots = [], []
    for index, row in enumerate(rows):
        x, y = _place(rows, index)
        dots.append(f'<circle class="{row.kind}" cx="{x}" cy="{y}" r="4"/>')
        for source in row.inputs:
            from_x, from_y = _place(rows, source)
            paths.append(f"M{from_x} {from_y}V{y - _ROW // 2}L{x} {y}")
    return (
        f'<svg width="{width}" height="{len(rows) * _ROW}" aria-hidden="true">'
        f'<path d="{"".join(paths)}"/>{"".join(dots)}</svg>'
    )


def _place(rows: list[Row], index: int) -> tuple[int, int]:
    return _LANE * (1 + rows[index].lane), index * _ROW + _ROW // 2


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: before and after</title><style>{style}</style></head><body>
<header><h1>{title}</h1>
<p class="key"><span class="ours">tf_blockdnn, or what it replaces</span>
<span class="reorder">reorder</span> <span class="left">left to TensorFlow, with the reason</span>
<span class="unfused">not fused</span> <span class="plain">other ops</span></p>
</header>
{body}
</body></html>
"""

_STYLE = """
:root{--ours:#1769aa;--reorder:#c2410c;--left:#a16207;--unfused:#7c3aed;--plain:#64748b}
*{box-sizing:border-box}
body{margin:0 auto;padding:16px;max-width:1400px;font:14px/1.5 system-ui,sans-serif;color:#1e293b}
h1{font-size:22px;margin:0;overflow-wrap:anywhere}h2{font-size:17px;margin:24px 0 8px}
h3{font-size:14px;margin:0 0 8px}small{font-weight:normal;color:#64748b}
pre{background:#f1f5f9;padding:12px;margin:0 0 16px;white-space:pre-wrap;overflow-wrap:anywhere}
.both{display:grid;grid-template-columns:minmax(0,1fr) minmax(0,1fr);gap:24px}
@media(max-width:760px){.both{grid-template-columns:minmax(0,1fr)}}
.rows{position:relative}svg{position:absolute;left:0;top:0}
svg path{fill:none;stroke:#cbd5e1;stroke-width:1.5}
ol{list-style:none;margin:0;padding:0}
li{height:24px;line-height:24px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
li span{color:#475569}li i{color:#64748b;font-size:12px}
.key span{display:inline-block;margin-right:12px}
.ours b,.key .ours{color:var(--ours)}.reorder b,.key .reorder{color:var(--reorder)}
.left b,.left i,.key .left{color:var(--left)}.unfused b,.key .unfused{color:var(--unfused)}
.plain b,.input b,.key .plain{color:var(--plain)}
circle{fill:var(--plain)}circle.ours{fill:var(--ours)}circle.reorder{fill:var(--reorder)}
circle.left{fill:var(--left)}circle.unfused{fill:var(--unfused)}circle.input{fill:#1e293b}
@media(prefers-color-scheme:dark){
:root{--ours:#7cc4ff;--reorder:#fb923c;--left:#facc15;--unfused:#c4b5fd;--plain:#94a3b8}
body{background:#0f172a;color:#e2e8f0}pre{background:#1e293b}li span{color:#cbd5e1}
svg path{stroke:#475569}circle.input{fill:#e2e8f0}}
"""
