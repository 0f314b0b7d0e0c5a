"""What the command line prints, as rich tables."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ..rewriter.summary import counted, faster, precision_lines
from ..showing.peers.libraries import OURS, PEERS


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def _both(timing) -> tuple[str, str]:
    return f"{timing.median:.2f}", f"{timing.minimum:.2f}"


def _conditions(result, runs: int, threads: str) -> str:
    shapes = ", ".join(f"{name} {list(shape)}" for name, (shape, _) in result.inputs.items())
    return escape(f"{shapes}; {counted(runs, 'run')} of each, in turn; {threads}")


def signatures(report) -> Table:
    """One row a signature of a SavedModelReport: what was converted, left and reordered."""
    table = _table("signature", "converted", "left to TensorFlow", "reorders")
    for name, part in report.signatures.items():
        table.add_row(
            escape(name), str(len(part.converted)), str(len(part.declined)), str(len(part.reorders))
        )
    for name in report.kept:
        table.add_row(escape(name), "not asked for", "", "")
    return table


def precision(report) -> str:
    """What low precision costs each signature."""
    lines = [
        f"{name}: {line.strip()}"
        for name, part in report.signatures.items()
        for line in precision_lines(part)
    ]
    return escape("\n".join(lines))


def comparison(result) -> Group:
    """Times of a Comparison, with the ratio, the largest difference and the report's counts."""
    threads = f"inter-op threads: {result.inter_op_threads or 'left to TensorFlow'}"
    table = _table("", "median ms", "min ms", "speed-up")
    table.add_row("TensorFlow", *_both(result.original), "")
    gain = f"[bold]{faster(result.median_ratio)}[/]"
    table.add_row("tf_blockdnn", *_both(result.optimized), gain)
    return Group(
        _conditions(result, len(result.original.milliseconds), threads),
        table,
        f"largest difference {result.difference.absolute:.2e}, which is "
        f"{result.difference.relative:.1e} of the largest output",
        f"{counted(result.convolutions, 'convolution')} converted, "
        f"{counted(result.reorders, 'reorder')} left, "
        f"{counted(result.left, 'convolution')} left to TensorFlow",
    )


def peers(result) -> Group:
    """Times of a PeerComparison, fastest first, and who was not timed."""
    table = _table("", "median ms", "min ms", "tf_blockdnn is", "memory, MiB", "difference")
    for name in sorted(result.times, key=lambda name: result.times[name].median):
        time, ratio = result.times[name], result.ratio(name)
        title = PEERS[name].title + (" (its default)" if name == result.default else "")
        table.add_row(
            f"[bold]{escape(title)}[/]" if name == OURS else escape(title),
            *_both(time),
            "" if name == OURS or ratio is None else faster(ratio),
            f"{result.memory[name] / 2**20:.0f}",
            f"{result.differences[name].relative:.0e}",
        )
    runs = max((len(time.milliseconds) for time in result.times.values()), default=0)
    problems = [escape(f"{PEERS[n].title}: {why}") for n, why in result.problems.items()]
    versions = {PEERS[n].title.partition(",")[0]: version for n, version in result.versions.items()}
    return Group(
        _conditions(result, runs, counted(result.threads, "thread")),
        table,
        escape(", ".join(f"{title} {version}" for title, version in versions.items())),
        *problems,
    )


def facts(values: dict) -> str:
    """A dict as lines of "key  value"; no value is cut, since one may be a path to copy."""
    width = max(map(len, values))
    return "\n".join(
        f"{escape(key.replace('_', ' ')):{width}}  [bold]{escape(_plain(value))}[/]"
        for key, value in values.items()
    )


def _plain(value) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    return str(value)


def what_next(result, *, command: str) -> str:
    """What the demo did, where the page lies and what to try next."""
    model, fast = escape(str(result.model)), escape(str(result.optimised_model))
    ratio = faster(result.pictures[0].comparison.median_ratio)
    return f"""
[bold]{ratio}[/], and the same edges. See for yourself: [bold]{escape(str(result.page))}[/]

[bold]What happened[/]
  1. HED, a network trained to find edges, was saved as a SavedModel: {model}
  2. `{command} optimize` made it faster: {fast}
  3. Both found the edges in the same pictures, turn by turn.

[bold]Try next[/]
  {command} demo FOLDER_OF_PICTURES
  {command} inspect {model}
  {command} benchmark {model} --size 480,640 --peers
  {command} optimize YOUR_MODEL OUT
"""
