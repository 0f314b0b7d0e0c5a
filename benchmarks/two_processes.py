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
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable


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


def worker(work: str) -> None:
    """Says that it is ready; then for each line of seconds on stdin, how often it ran a second."""
    run = PLAIN[work]() if work in PLAIN else _network(work)
    print("ready", flush=True)
    for line in sys.stdin:
        done, start = 0, time.perf_counter()
        end = start + float(line)
        while time.perf_counter() < end:
            run()
            done += 1
        print(done / (time.perf_counter() - start), flush=True)


class Worker:
    """A process of `worker`."""

    def __init__(self, work: str):
        one_thread = {"TF_NUM_INTRAOP_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", work],
            env=os.environ | one_thread | {"TF_CPP_MIN_LOG_LEVEL": "3"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, seconds: float) -> None:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("two_processes: a worker has ended; stderr above says why")
        return line

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(workers: list[Worker], seconds: float) -> tuple[float, float]:
    """The rates of the workers one after the other, and of all at once, as sums."""
    alone = 0.0
    for each in workers:
        each.ask(seconds)
        alone += float(each.answer())
    for each in workers:
        each.ask(seconds)
    return alone, sum(float(each.answer()) for each in workers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = ("ResNet50", "MobileNetV2", "products", "copies", "loop")
    parser.add_argument(
        "--work",
        type=lambda text: text.split(","),
        default=kinds,
        help=f"networks of keras.applications, {', '.join(PLAIN)}; default: {','.join(kinds)}",
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.5, help="of a turn")
    parser.add_argument("--worker", metavar="WORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return
    rates: dict[str, list[tuple[float, float]]] = {work: [] for work in options.work}
    with contextlib.ExitStack() as running:
        workers = {work: [Worker(work), Worker(work)] for work in rates}
        for each in (each for pair in workers.values() for each in pair):
            running.callback(each.close)
            each.answer()
        for _ in range(options.rounds):
            for work, pair in workers.items():
                rates[work].append(measure(pair, options.seconds))
    print(f"{options.rounds} rounds; both at once, as a share of the two alone")
    for work, measured in rates.items():
        ratios = sorted(together / alone for alone, together in measured)
        low, median, high = statistics.quantiles(ratios, n=4)
        one = statistics.median(alone / 2 for alone, _ in measured)
        quarters = f"half of them {low:.3f} to {high:.3f}"
        print(f"{work:12} median {median:.3f}, {quarters}; {one:.1f}/s alone")


if __name__ == "__main__":
    main()
