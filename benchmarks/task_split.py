"""Simulates on paper how a network's convolutions split over more threads than a machine has.

    python benchmarks/task_split.py [--network resnet50] [--threads 32,64] [--batch 1]

Every plan comes from the library, for that number of threads. Threads that are equally fast take
tasks, and units of each other's tasks once none is left, by the rules of the drivers; a unit costs
what it multiplies, and bringing sources along costs nothing. The imbalance of a layer is how much
longer its busiest thread works than all threads do on average. The last row weighs the layers by
their work: it is what the whole network loses, apart from memory, barriers and clocks.
"""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import math
import pathlib
from collections.abc import Callable

from rich.console import Console
from rich.table import Table

SHAPES = pathlib.Path(__file__).with_name("shapes")
# Output blocks and pixels of a register tile: see cc/core/gemm/tiles/gemm_kernel.cc.
TILES = {"avx512": (2, 14), "avx2": (1, 6), "generic": (1, 2)}
FEW_GROUPS = 4  # TaskUnits::kFewGroups of cc/core/conv/direct/direct_driver.cc
SHARED_TASKS = 4  # kSharedTasks of cc/core/conv/winograd/winograd_driver.cc


@dataclasses.dataclass(frozen=True)
class Split:
    """The tasks of a call, and what threads take of them: see cc/base/threads/parallel_units.h."""

    costs: list[list[float]]  # of each unit of each task
    fraction: float
    least: int

    @property
    def work(self) -> float:
        return sum(map(sum, self.costs))

    def makespan(self, threads: int) -> float:
        """When the last of so many equal threads ends."""
        left: list[list[float] | None] = [None] * threads  # of each thread's task
        free = [(0.0, thread) for thread in range(threads)]
        tasks = iter(self.costs)
        end = 0.0
        while free:
            now, thread = heapq.heappop(free)
            from_end = False
            if not left[thread]:
                left[thread] = list(next(tasks, ()))
            units = left[thread]
            if not units:
                units = max(filter(None, left), key=len, default=None)
                from_end = True
            if not units:
                end = max(end, now)
                continue
            count = min(len(units), max(self.least, int(len(units) * self.fraction)))
            taken = slice(len(units) - count, None) if from_end else slice(count)
            cost = sum(units[taken])
            del units[taken]
            heapq.heappush(free, (now + cost, thread))
        return end

    def imbalance(self, threads: int) -> float:
        return self.makespan(threads) * threads / self.work - 1


def cut(total: int, size: int) -> list[int]:
    """`total` in parts of `size`, of which the last may be smaller."""
    return [min(size, total - at) for at in range(0, total, size)]


def ranges(count: int, splits: int) -> list[range]:
    return [range(count * i // splits, count * (i + 1) // splits) for i in range(splits)]


def tile() -> tuple[int, int]:
    """Blocks and pixels of a register tile of this process's instruction set."""
    import tf_blockdnn as bd

    return TILES[bd.info()["isa"].split("_")[0]]


def groups(plan, blocks: int) -> tuple[list[int], int]:
    """Blocks of each output group, and in how many shares tasks take the groups."""
    widest, _ = tile()
    widths = cut(blocks, widest)
    return widths, math.ceil(len(widths) * widest / plan.blocking["task_blocks"])


def winograd(plan, batch: int, height: int, width: int, blocks: int, threads: int) -> Split:
    """Blocks of tiles, times ranges of output groups; units are groups."""
    tile_h, tile_w = map(int, plan.algorithm.removeprefix("winograd").split("x"))
    tiles = batch * math.ceil(height / tile_h) * math.ceil(width / tile_w)
    widths, splits = groups(plan, blocks)
    costs = [
        [float(part * widths[g]) for g in share]
        for part in cut(tiles, plan.blocking["task_tiles"])
        for share in ranges(len(widths), splits)
    ]
    share = math.ceil(len(widths) / splits)
    if len(costs) > SHARED_TASKS * threads:
        return Split(costs, 1, share)
    return Split(costs, 0.8, math.ceil(share / 5))


def direct(plan, batch: int, pixels: int, width: int, blocks: int, source_blocks: int) -> Split:
    """Strips of pixels, times ranges of output groups; units are groups, or pixels."""
    strip = plan.blocking["strip_pixels"]
    widths, splits = groups(plan, blocks)
    chunked = plan.blocking["source_blocks"] < source_blocks
    by_groups = splits > 1 or len(widths) >= FEW_GROUPS
    unit = width if plan.blocking.get("strip_rows") else tile()[1]
    costs = []
    for part in batch * cut(pixels, strip):
        for share in ranges(len(widths), splits):
            task = [float(part * widths[g]) for g in share]
            if chunked:
                task = [sum(task)]
            elif not by_groups:
                task = [float(each * blocks) for each in cut(part, unit)]
            costs.append(task)
    if chunked or by_groups:
        return Split(costs, 0, 1)
    return Split(costs, 0.67, math.ceil(math.ceil(strip / unit) / 9))


def split(row: dict[str, int], plan, threads: int) -> Split:
    """The split of a layer, a row of a table of shapes, by its plan."""
    height = (row["ih"] + row["pad_top"] + row["pad_bottom"] - row["kh"]) // row["sh"] + 1
    width = (row["iw"] + row["pad_left"] + row["pad_right"] - row["kw"]) // row["sw"] + 1
    blocks, source_blocks = math.ceil(row["oc"] / 16), math.ceil(row["ic"] / 16)
    if plan.algorithm.startswith("winograd"):
        return winograd(plan, row["n"], height, width, blocks, threads)
    return direct(plan, row["n"], height * width, width, blocks, source_blocks)


def layers(network: str) -> list[tuple[str, dict[str, int]]]:
    """Name and numbers of each row of benchmarks/shapes, dense convolutions only."""
    columns, found = None, []
    for line in (SHAPES / f"{network}.txt").read_text().splitlines():
        words = line.lstrip("# ").split()
        if line.startswith("# name"):
            columns = words[1:]
        elif columns and words:
            row = dict(zip(columns, map(int, words[1:]), strict=True))
            if row["groups"] == 1:
                found.append((words[0], row))
    return found


def plan_of(row: dict[str, int], threads: int):
    import tf_blockdnn as bd

    plain = row["ic"] % 16 != 0
    src = (row["n"], row["ih"], row["iw"], row["ic"])
    if not plain:
        src = (row["n"], row["ic"] // 16, *src[1:3], 16)
    return bd.ops.memory_plan(
        "conv",
        src,
        (row["kh"], row["kw"], row["ic"], row["oc"]),
        strides=(row["sh"], row["sw"]),
        padding=[[row["pad_top"], row["pad_bottom"]], [row["pad_left"], row["pad_right"]]],
        threads=threads,
        **({"src_layout": "nhwc"} if plain else {}),
    )


def table(network: str, batch: int, threads: list[int], plan: Callable = plan_of) -> Table:
    """A row for each layer, and one for all."""
    made = Table(title=f"{network}, batch {batch}: tasks, and imbalance", title_justify="left")
    made.add_column("layer")
    for count in threads:
        made.add_column(f"{count} threads", justify="right")
    busiest, mean = [0.0] * len(threads), [0.0] * len(threads)
    for name, row in layers(network):
        row = row | {"n": batch}
        cells = []
        for i, count in enumerate(threads):
            planned = plan(row, count)
            parts = split(row, planned, count)
            imbalance = parts.imbalance(count)
            weight = row["count"] * row["kh"] * row["kw"] * row["ic"] * row["oc"]
            weight *= row["ih"] * row["iw"] / (row["sh"] * row["sw"]) / count
            mean[i] += weight
            busiest[i] += weight * (1 + imbalance)
            cells.append(f"{planned.algorithm}, {len(parts.costs)}, {imbalance:.0%}")
        made.add_row(f"{row['count']} x {name}", *cells)
    made.add_section()
    made.add_row("all", *(f"{b / m - 1:.0%}" for b, m in zip(busiest, mean, strict=True)))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="resnet50")
    parser.add_argument(
        "--threads", type=lambda text: [int(n) for n in text.split(",")], default=[32, 64]
    )
    parser.add_argument("--batch", type=int, default=1)
    options = parser.parse_args()
    Console(width=100).print(table(options.network, options.batch, options.threads))


if __name__ == "__main__":
    main()
