"""How many threads ops run on: told by the program, the environment or the machine's limits."""

import ctypes
from numbers import Integral

import tensorflow as tf

from .native import c_call, c_library

MOST_THREADS = 1024  # kMostPoolThreads of cc/base/threads/pool_size.h


def set_threads(n: int, *, callers: int = 1) -> None:
    """Sets how many threads an op of this library uses, the calling one included.

    A server that answers several requests at the same time names their number: `callers` share
    the n threads, n // callers each, and an op is planned for as many. Of more callers than that,
    whether told or not, each gets an equal part for as long as they call at the same time.

    It has to be called at the program's start: the first op fixes the number, since plans and
    temporary memory are made for it. Without a call it is the first of these that is given:

    1. TensorFlow's intra-op setting (`tf.config.threading`, or the session's), where it differs
       from the number of CPUs, which is TensorFlow's default;
    2. the environment variable `TF_NUM_INTRAOP_THREADS`;
    3. the least of `OMP_NUM_THREADS`, the cores of the CPUs that this process may run on
       (`taskset`, cpusets), and the CPU limit of its control groups (`docker run --cpus`), a part
       counted as a CPU.

    TensorFlow's own ops follow 1, 2 and the CPUs, whatever was set here, so a container with half
    a core should set `TF_NUM_INTRAOP_THREADS=1` for both. `bd.info()["threads_source"]` names what
    decided.

    Args:
      n: threads, 1 to 1024. More than there are cores make ops slower, not wrong.
      callers: threads of the program that call at the same time, 1 to n.

    Raises:
      ValueError: n or callers are out of range.
      RuntimeError: ops have been made, or their memory planned, for another number of threads.

    Example:
      >>> threads = bd.info()["threads"]
      >>> bd.set_threads(threads)  # at the program's start any other number, too
      >>> bd.info()["threads"] == threads
      True
    """
    if isinstance(n, bool) or not isinstance(n, Integral) or not 1 <= n <= MOST_THREADS:
        raise ValueError(f"set_threads: n must be from 1 to {MOST_THREADS}, got {n!r}")
    if isinstance(callers, bool) or not isinstance(callers, Integral) or not 1 <= callers <= n:
        raise ValueError(f"set_threads: callers must be from 1 to n, which is {n}, got {callers!r}")
    try:
        c_call("BlockdnnSetThreads", int(n), int(callers))
    except ValueError as late:
        if callers > 1 or n != threads_in_use()[0]:
            raise RuntimeError(str(late)) from None


def threads_in_use() -> tuple[int, str]:
    """The threads that an op created now would use, and what decided that."""
    source = ctypes.c_char_p()
    told = tf.config.threading.get_intra_op_parallelism_threads()
    threads = c_library().BlockdnnThreads(told, ctypes.byref(source))
    return threads, source.value.decode()
