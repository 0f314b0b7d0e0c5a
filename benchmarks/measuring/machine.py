"""The machine that is measured on: what it is, what else it does, and a way to disturb it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
from collections.abc import Iterator

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"


def describe() -> dict:
    """{"cpu", "isa", "cores", "system"}; the cores are those that this process may use."""
    facts = _cpu()
    flags = facts.get("flags", "").split()
    return {
        "cpu": ", ".join([facts.get("model name", platform.processor()), *_generation(facts)]),
        "isa": "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "x86-64",
        "cores": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
    }


def facts() -> dict:
    """{"machine", "commit", "tensorflow_default"}: what every file of measurements notes.

    The default is the name of the peer that runs TensorFlow in the setting of oneDNN that it
    chooses itself on this CPU, asked in a process without the variable that forces it.
    """
    environment = {k: v for k, v in os.environ.items() if k != _ONEDNN}
    command = [sys.executable, "-m", "tf_blockdnn", "info", "--json"]
    told = json.loads(_said(command, env=environment, cwd=_ROOT))
    return {
        "machine": describe(),
        "commit": _commit(),
        "tensorflow_default": (
            "tensorflow" if told["onednn"].startswith("on") else "tensorflow-plain"
        ),
    }


def _commit() -> str:
    """The checkout's, with a word if files under version control differ from it."""
    name = _said(["git", "rev-parse", "--short=12", "HEAD"], cwd=_ROOT).strip()
    changed = _said(["git", "status", "--porcelain", "--untracked-files=no"], cwd=_ROOT)
    # What is written meanwhile is no change of the code.
    lines = [line for line in changed.splitlines() if " docs/" not in line]
    return f"{name} with changes" if lines else name


def _said(command: list[str], **where) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, **where).stdout


def _cpu() -> dict[str, str]:
    """The first core's entries in /proc/cpuinfo."""
    first = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _generation(facts: dict[str, str]) -> list[str]:
    """AMD's, since a virtual machine may name its CPU no more than "AMD EPYC"; else nothing."""
    if facts.get("vendor_id") != "AuthenticAMD":
        return []
    family, model = int(facts["cpu family"]), int(facts["model"])
    zen4 = model >> 4 in (1, 6, 7, 10)
    names = {25: "Zen 4" if zen4 else "Zen 3", 26: "Zen 5"}
    return [names.get(family, f"family {family}, model {model}")]


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
