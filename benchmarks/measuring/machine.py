"""The machine that is measured on: what it is, what else it does, and a way to disturb it."""

from __future__ import annotations

import contextlib
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterator


def describe() -> dict:
    """{"cpu", "cores", "system"}; the cores are those that this process may use."""
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
    }


def _cpu() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


class BusyElsewhere:
    """Counts what all processes but this one and its children use, from its creation on."""

    def __init__(self):
        self._start = time.monotonic()
        self._before = self._seconds()

    def cores(self) -> float:
        """Cores that the others kept busy on average. Children count as others until they end."""
        return max(0.0, (self._seconds() - self._before) / (time.monotonic() - self._start))

    @staticmethod
    def _seconds() -> float:
        # proc(5): user, nice, system, idle, iowait, irq, softirq, steal.
        cpu = [int(cell) for cell in pathlib.Path("/proc/stat").read_text().split()[1:9]]
        everyone = (sum(cpu) - cpu[3] - cpu[4]) / os.sysconf("SC_CLK_TCK")
        return everyone - sum(os.times()[:4])


@contextlib.contextmanager
def one_core_taken() -> Iterator[None]:
    """Keeps another process computing without pause on the last core meanwhile."""
    core = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}])\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        process.kill()
        process.wait()
