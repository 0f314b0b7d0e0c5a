"""What is installed and what it runs on."""

import os
import pathlib
import platform

import tensorflow as tf

from .native import LIBRARY_PATH, active_isa, built_for
from .targets import why_unavailable
from .tensorflow_private import is_onednn_on
from .threads import threads_in_use
from .version import VERSION


def info() -> dict:
    """Returns versions and facts about the machine, as a dict that is ready for JSON.

    Returns:
      version: of tf_blockdnn.
      tensorflow: the running version.
      built_for: the TensorFlow version the library was compiled against.
      library: path of the loaded library.
      cpu: what the processor calls itself.
      caches: level to size of the first core's, such as {"L1d": "32K", "L2": "512K"}.
      isa: "generic", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16" or "avx512_amx":
        the best that kernels may use here, after the cap TF_BLOCKDNN_MAX_ISA.
      isa_source: "the processor", or that cap.
      onednn: "on" or "off": whether TensorFlow's own ops use oneDNN here, and what decided it.
      threads: threads that an op uses.
      threads_source: what decided that (see `bd.set_threads`).
      inter_op_threads: TensorFlow's setting; 0 leaves it to TensorFlow, 1 is best for latency.
      eager_path: "available", or why calls on eager tensors take TensorFlow's dispatch.

    Example:
      >>> bd.info()["isa"].startswith(("generic", "avx"))
      True
    """
    threads, threads_source = threads_in_use()
    cap, onednn = (os.environ.get(name) for name in (_ISA_CAP, _ONEDNN))
    decided = f"{_ONEDNN}={onednn}" if onednn else "TensorFlow's choice for this processor"
    return {
        "version": VERSION,
        "tensorflow": tf.__version__,
        "built_for": built_for(),
        "library": os.fspath(LIBRARY_PATH),
        "cpu": _cpu(),
        "caches": _caches(),
        "isa": active_isa(),
        "isa_source": f"{_ISA_CAP}={cap}" if cap else "the processor",
        "onednn": f"{'on' if is_onednn_on() else 'off'} ({decided})",
        "eager_path": why_unavailable() or "available",
        "threads": threads,
        "threads_source": threads_source,
        "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),
    }


_KINDS = {"Data": "d", "Instruction": "i"}
_ISA_CAP, _ONEDNN = "TF_BLOCKDNN_MAX_ISA", "TF_ENABLE_ONEDNN_OPTS"


def _cpu() -> str:
    """The model name that Linux reports, or the architecture."""
    for line in _read("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _caches() -> dict[str, str]:
    """Name to size; empty where Linux does not say."""
    sizes = {}
    for folder in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (_read(folder / name).strip() for name in ("level", "type", "size"))
        sizes[f"L{level}{_KINDS.get(kind, '')}"] = size
    return sizes


def _read(path) -> str:
    try:
        return pathlib.Path(path).read_text()
    except OSError:
        return ""
