"""What the command line prints, as rich tables."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table


def signatures(report) -> Table:
    """One row a signature of a SavedModelReport: how much was converted, declined, reordered."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("signature")
    for heading in ("converted", "left as it was", "reorders"):
        table.add_column(heading, justify="right")
    for name, one in report.signatures.items():
        table.add_row(
            escape(name), str(len(one.converted)), str(len(one.declined)), str(len(one.reorders))
        )
    for name in report.kept:
        table.add_row(escape(name), "not asked for", "", "")
    return table


def details(report) -> Group:
    """What was converted, and what was declined and why, for each distinct graph of a report."""
    blocks: list = []
    seen: list = []
    for name, one in report.signatures.items():
        if any(one is other for other in seen):
            continue
        seen.append(one)
        for heading, rows in (
            ("converted", [(c.node, c.op, c.details) for c in one.converted]),
            ("concatenations written in place", one.joined),
            ("reorders", one.reorders),
            ("left as it was", one.declined),
            ("not fused", one.unfused),
            ("warnings", [(warning,) for warning in one.warnings]),
        ):
            if rows:
                blocks += [f"[bold]{escape(name)}[/]: {heading}", _rows(rows), ""]
    return Group(*blocks)


def _rows(rows) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2))
    for _ in rows[0]:
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    return table


def comparison(result) -> Group:
    """Times of a Comparison, with the ratio, the largest difference and the report's counts."""
    shapes = ", ".join(f"{name} {list(shape)}" for name, (shape, _) in result.inputs.items())
    threads = f"inter-op threads: {result.inter_op_threads or 'left to TensorFlow'}"
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for heading in ("min ms", "median ms", "times as fast"):
        table.add_column(heading, justify="right")
    table.add_row(
        "TensorFlow", f"{result.original.minimum:.2f}", f"{result.original.median:.2f}", "1"
    )
    table.add_row(
        "tf_blockdnn",
        f"{result.optimised.minimum:.2f}",
        f"{result.optimised.median:.2f}",
        f"[bold]{result.ratio:.2f}[/]",
    )
    return Group(
        escape(f"{shapes}; {len(result.original.milliseconds)} runs of each, in turn; {threads}"),
        table,
        f"largest difference {result.difference.absolute:.2e}, which is "
        f"{result.difference.relative:.1e} of the largest output",
        f"{result.convolutions} convolutions converted, {result.reorders} reorders left, "
        f"{result.left} convolutions left to TensorFlow",
    )


def facts(values: dict) -> Table:
    """A dict as two columns."""
    table = Table(box=None, show_header=False)
    for key, value in values.items():
        table.add_row(escape(str(key)), f"[bold]{escape(str(value))}[/]")
    return table


def what_next(result, *, command: str) -> str:
    """What the demo did, where its picture lies and what to try next."""
    model, fast = escape(str(result.model)), escape(str(result.optimised_model))
    return f"""
[bold]What happened[/]
  1. HED, a network trained to find edges, was saved as a SavedModel: {model}
  2. `{command} optimize` made it faster: {fast}
  3. Both found the edges in the same photograph, turn by turn.

[bold]The picture[/]  {escape(str(result.picture))}
  the photograph, the edges TensorFlow finds, the edges the optimised model finds

[bold]Try next[/]
  {command} demo --image YOUR_PICTURE.jpg
  {command} inspect {model}
  {command} benchmark {model} --size 480,640
  {command} optimize YOUR_SAVED_MODEL OUT
"""
