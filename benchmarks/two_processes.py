"""Measures whether two processes of one thread each do twice the work of one.

    python benchmarks/two_processes.py [--work ResNet50,MobileNetV2,products,copies,loop]

For each kind of work there are two processes all the time. In turns the first works alone, the
second alone, and both at once. The ratio is the rate of both at once over the sum of their rates
alone: 1 is perfect, 0.5 is no gain. What is shared lowers it: memory, caches, clocks, and on
machines whose CPUs are hyperthreads, the core. So does what else runs on the machine. Plain
programs say what it leaves: `loop` shares nothing, `products` multiplies matrices that fit a
core's own caches, and `copies` is bound by memory. Kinds take turns, so that disturbances hit all
alike.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from measuring import turns
from measuring.prepare import HERE
from measuring.turns import names
from measuring.workers import Workers
from peers.row import Peer


def _loop() -> Callable:
    return lambda: sum(range(200_000))


def _products() -> Callable:
    import numpy as np

    a, b, c = np.full((3, 128, 128), 0.5, np.float32)
    return lambda: [np.dot(a, b, out=c) for _ in range(20)]


def _copies() -> Callable:
    import numpy as np

    a, b = np.zeros((2, 16 << 20), np.float32)
    return lambda: np.copyto(b, a)


# Plain programs without TensorFlow: name -> what makes a function that runs for some milliseconds.
PLAIN = {"loop": _loop, "products": _products, "copies": _copies}


def _network(name: str) -> Callable:
    """What runs one image through a network of keras.applications."""
    import keras
    import numpy as np

    import tf_blockdnn as bd

    bd.set_threads(1)
    fast = bd.optimize(getattr(keras.applications, name)(weights=None))
    image = np.random.default_rng(1).random((1, *fast.input_shape[1:]), np.float32)
    for _ in range(5):
        fast(image)
    if bd.info()["threads"] != 1:
        raise SystemExit("two_processes: a worker has more than one thread")
    return lambda: fast(image)


def _run(work: str, inputs: Mapping, threads: int) -> Callable:
    run = PLAIN[work]() if work in PLAIN else _network(work)

    def once() -> dict:
        run()
        return {}

    return once


_ONE = {"TF_NUM_INTRAOP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
PEERS = {name: Peer(name, _run, (), _ONE) for name in ("first", "second")}


def measure(pair: list[Callable], runs: int, pool: ThreadPoolExecutor) -> tuple[float, float]:
    """Runs a second of the workers one after the other, and of both at once, as sums."""

    def rate(worker: Callable) -> float:
        return 1e3 * runs / sum(worker("", runs))

    return sum(map(rate, pair)), sum(pool.map(rate, pair))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = ("ResNet50", "MobileNetV2", "products", "copies", "loop")
    parser.add_argument(
        "--work",
        type=names,
        default=kinds,
        help=f"networks of keras.applications, {', '.join(PLAIN)}; default: {','.join(kinds)}",
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    options = parser.parse_args()
    rates: dict[str, list[tuple[float, float]]] = {work: [] for work in options.work}
    with contextlib.ExitStack() as stack:
        pool, runs, pairs = stack.enter_context(ThreadPoolExecutor(2)), {}, {}
        for work in rates:
            workers = stack.enter_context(Workers(HERE, "two_processes", {}, threads=1))
            for peer, row in PEERS.items():
                workers.start(peer, row, work)
            turns.require(workers)
            pairs[work] = list(workers.running.values())
            runs[work] = max(1, int(1e3 * options.seconds / min(pairs[work][0]("", 2))))
        for _ in range(options.rounds):
            for work, pair in pairs.items():
                rates[work].append(measure(pair, runs[work], pool))
    print(f"{options.rounds} rounds; both at once, as a share of the two alone")
    for work, measured in rates.items():
        ratios = sorted(together / alone for alone, together in measured)
        low, median, high = statistics.quantiles(ratios, n=4)
        one = statistics.median(alone / 2 for alone, _ in measured)
        quarters = f"half of them {low:.3f} to {high:.3f}"
        print(f"{work:12} median {median:.3f}, {quarters}; {one:.1f}/s alone")


if __name__ == "__main__":
    main()
