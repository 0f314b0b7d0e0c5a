"""Memory of this process, and whether work leaves some of it behind."""

import ctypes
import gc
import itertools
import statistics


def resident_bytes() -> int:
    """What lies in memory when all that has been freed is given back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096


def usual_growth(work, rounds: int = 5) -> float:
    """Bytes by which the process grows in a round of `work()`: the median of `rounds`.

    A leak shows in each round. What malloc reserves for a thread, and what the system maps, comes
    once, at a time that chance decides, and can be larger than a small leak.
    """
    work()  # what the first call alone needs
    sizes = [resident_bytes()]
    for _ in range(rounds):
        work()
        sizes.append(resident_bytes())
    return statistics.median(after - before for before, after in itertools.pairwise(sizes))
