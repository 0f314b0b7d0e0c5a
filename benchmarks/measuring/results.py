"""Shows measurements as tables.

A result is {"model", "batch", "threads", "cores_busy_elsewhere", "peers": {name: numbers}}; a
peer's numbers are {"min_ms", "median_ms", "runs", "relative_difference", "memory_bytes" (above the
imports), "versions", …} or have an "error".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from models import ZOO
from peers.networks import PEERS
from rich.markup import escape
from rich.table import Table

from . import turns

OURS = next(iter(PEERS))
_MIB = 1 << 20


def is_ours(peer: str) -> bool:
    """Whether it is this library, in whatever way it is called."""
    return peer == OURS or peer.startswith(f"{OURS}-")


def fastest(result: dict, wanted: Callable[[str], bool], number: str = "median_ms") -> str | None:
    """The fastest peer of those that `wanted` accepts; None if none was timed."""
    times = {n: row[number] for n, row in result["peers"].items() if number in row and wanted(n)}
    return min(times, key=times.get, default=None)


def best_tensorflow(result: dict, number: str = "min_ms") -> str | None:
    """The faster of TensorFlow with and without oneDNN; None if neither was measured."""
    return fastest(result, ("tensorflow", "tensorflow-plain").__contains__, number)


def best_peer(result: dict, number: str = "min_ms", precision: str = "float32") -> str | None:
    """The name of the fastest of the others that compute in that type; None if there is none."""

    def competes(peer: str) -> bool:
        return not is_ours(peer) and PEERS[peer].precision == precision

    return fastest(result, competes, number)


def ours_in(precision: str) -> str:
    """The name of ours in that type."""
    return OURS if precision == "float32" else f"{OURS}-{precision}"


def ratio(result: dict, number: str = "min_ms", precision: str = "float32") -> float | None:
    """The best peer's time over ours: 1.25 means that we are 1.25 times faster."""
    best = best_peer(result, number, precision)
    ours = result["peers"].get(ours_in(precision), {})
    if best is None or number not in ours:
        return None
    return result["peers"][best][number] / ours[number]


def table(result: dict) -> Table:
    """One network at one batch: a row for each peer."""
    loaded = any("loaded" in row for row in result["peers"].values())
    best = best_peer(result)
    columns = ["", "min", "median", "ours is faster", "MiB", "difference"]
    columns += ["median, a core taken"] * loaded
    shown = turns.table(f"{_title(result)}: milliseconds", result["cores_busy_elsewhere"], columns)
    ours = result["peers"].get(OURS, {}).get("min_ms")
    for name, row in result["peers"].items():
        title = f"[bold]{PEERS[name].title}[/]" if name in (OURS, best) else PEERS[name].title
        if "error" in row:
            shown.add_row(title, "[red]failed[/]")
            continue
        cells = [
            f"{row['min_ms']:.2f}",
            f"{row['median_ms']:.2f}",
            f"{row['min_ms'] / ours:.2f}x" if ours else "",
            f"{row['memory_bytes'] / _MIB:.0f}",
            f"{row['relative_difference']:.0e}",
        ]
        if "loaded" in row:
            cells.append(f"{row['loaded']['median_ms']:.2f} (×{row['loaded']['slowdown']:.2f})")
        shown.add_row(title, *cells)
    return shown


def summary(results: list[dict], precision: str = "float32") -> Table:
    """Ours against the best peer of the same type, a row for each network and batch."""
    name = ours_in(precision)
    columns = ("network", "batch", "threads", name, "TensorFlow", "oneDNN", "best peer")
    title = f"{name} against the best peer, {precision}: milliseconds, min (median)"
    shown = turns.table(title, 0, (*columns, "", "ours is faster"))
    for result in results:
        best, stock = best_peer(result, precision=precision), best_tensorflow(result)
        shown.add_row(
            ZOO[result["model"]].title,
            str(result["batch"]),
            str(result["threads"]),
            _times(result["peers"].get(name)),
            _times(result["peers"].get(stock)),
            {"tensorflow": "on", "tensorflow-plain": "off"}.get(stock, ""),
            _times(result["peers"].get(best)),
            PEERS[best].title if best else "",
            _ratios(result, precision),
        )
    return shown


def failures(results: list[dict]) -> Iterator[str]:
    """A line for each peer that could not be measured, with the reason."""
    for result in results:
        for name, row in result["peers"].items():
            if "error" in row:
                yield f"[red]{_title(result)}, {PEERS[name].title}:[/] {escape(row['error'])}"


def _title(result: dict) -> str:
    return f"{ZOO[result['model']].title}, batch {result['batch']}, threads {result['threads']}"


def _times(row: dict | None) -> str:
    return f"{row['min_ms']:.2f} ({row['median_ms']:.2f})" if row and "min_ms" in row else "–"


def _ratios(result: dict, precision: str) -> str:
    fastest, typical = (ratio(result, number, precision) for number in ("min_ms", "median_ms"))
    return "–" if fastest is None else f"{fastest:.2f}x ({typical:.2f}x)"
