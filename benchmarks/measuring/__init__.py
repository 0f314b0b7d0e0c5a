"""What the benchmarks share: environments and files, options, tables.

Timing, worker processes and differences are those of python/measuring: its modules are found here,
too, since importing the package would load TensorFlow into the process that measures.
"""

from pathlib import Path

__path__.append(str(Path(__file__).resolve().parents[2] / "python" / "measuring"))
