"""Measures whether two processes of one thread each do twice the work of one.

    python benchmarks/two_processes.py [--network MobileNetV2] [--rounds 8] [--seconds 1.5]

Both are there all the time. In turns the first works alone, the second alone, and both at once,
each as many images as it can. The ratio is the images of both at once over those of the two alone:
1 is perfect, 0.5 is no gain. What is shared lowers it: memory, caches, clocks, and on machines
whose CPUs are hyperthreads, the core. So does what else runs on the machine: `--network none` is a
loop that shares nothing, whose ratio is the most that a network could have.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

FEWEST = 0.95


def worker(network: str) -> None:
    """Says how many threads it has; then for each number of seconds on stdin, the images it did."""
    threads, run = (1, lambda: sum(range(200_000))) if network == "none" else calls_of(network)
    print(threads, flush=True)
    for line in sys.stdin:
        images, end = 0, time.perf_counter() + float(line)
        while time.perf_counter() < end:
            run()
            images += 1
        print(images, flush=True)


def calls_of(network: str) -> tuple[int, Callable]:
    """The number of threads, and what runs one image."""
    import keras
    import numpy as np

    import tf_blockdnn as bd

    bd.set_threads(1)
    fast = bd.optimize(getattr(keras.applications, network)(weights=None))
    image = np.random.default_rng(1).random((1, *fast.input_shape[1:]), np.float32)
    for _ in range(5):
        fast(image)
    return bd.info()["threads"], lambda: fast(image)


class Worker:
    """A process of `worker`."""

    def __init__(self, network: str):
        environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTRAOP_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--worker", network],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, seconds: float) -> None:
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def answer(self) -> int:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("two_processes: a worker has ended; stderr above says why")
        return int(line)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure(workers: list[Worker], seconds: float) -> tuple[int, int]:
    """Images of the workers one after the other, and of all at once."""
    alone = 0
    for each in workers:
        each.ask(seconds)
        alone += each.answer()
    for each in workers:
        each.ask(seconds)
    return alone, sum(each.answer() for each in workers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", default="MobileNetV2", help="of keras.applications, or none")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--worker", metavar="NETWORK", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker)
        return 0
    workers = [Worker(options.network) for _ in range(2)]
    try:
        if any(each.answer() != 1 for each in workers):
            raise SystemExit("two_processes: a worker has more than one thread")
        ratios = []
        for _ in range(options.rounds):
            alone, together = measure(workers, options.seconds)
            ratios.append(together / alone)
            rates = f"{alone / options.seconds:.0f} images/s in turns, "
            print(f"{rates}{together / options.seconds:.0f} at once: {ratios[-1]:.3f}", flush=True)
    finally:
        for each in workers:
            each.close()
    median = statistics.median(ratios)
    print(f"{options.network}: median {median:.3f}, best {max(ratios):.3f} of twice one process")
    return 0 if median >= FEWEST else 1


if __name__ == "__main__":
    sys.exit(main())
