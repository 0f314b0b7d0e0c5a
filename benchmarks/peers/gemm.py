"""Products with packed weights in the libraries that are compared, a row of `PEERS` each.

A runner takes the path of a library (or "") and makes one product of each case "M/N/K" that
`inputs` names: C = A B, row-major, with B brought into the library's own form once.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Mapping

import numpy as np

from .row import Peer, limit_tensorflow

Cases = dict[str, Callable[[], dict[str, np.ndarray]]]

# Of oneDNN 3's dnnl_types.h.
_CPU, _F32, _ANY, _AB, _WEIGHTS_MD = 1, 3, 1, 3, 131
_SRC, _WEIGHTS, _DST = 1, 33, 17
_ALLOCATE = ctypes.c_void_p(-1)
# Of mkl_cblas.h.
_ROWS, _AS_IS, _PACKED, _B_MATRIX = 101, 111, 151, 162


class _Argument(ctypes.Structure):
    _fields_ = (("name", ctypes.c_int), ("memory", ctypes.c_void_p))


def sizes(case: str) -> tuple[int, int, int]:
    """M, N and K of "M/N/K"."""
    m, n, k = map(int, case.split("/"))
    return m, n, k


def matrices(case: str) -> tuple[np.ndarray, np.ndarray]:
    """A [M, K] and B [K, N], the same everywhere."""
    m, n, k = sizes(case)
    random = np.random.default_rng(0)
    return random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)


def _cases(inputs: Mapping[str, np.ndarray], make: Callable[[str], Callable]) -> Cases:
    def run(case: str) -> dict[str, np.ndarray]:
        return {case: made(case)()}

    made = functools.lru_cache(None)(make)
    return {case: functools.partial(run, case) for case in inputs["cases"].tolist()}


def tf_blockdnn(library: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """`bd.ops.packed_matmul` of eager tensors, the cost of the op's call included."""
    tf = limit_tensorflow(threads)

    import tf_blockdnn as bd

    def make(case: str):
        a, b = map(tf.constant, matrices(case))
        return lambda: bd.ops.packed_matmul(a, b, how="constant")

    return _cases(inputs, make)


def openblas(library: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """NumPy's OpenBLAS, which has no packed form."""

    def make(case: str):
        a, b = matrices(case)
        c = np.empty(sizes(case)[:2], np.float32)
        return lambda: np.matmul(a, b, out=c)

    return _cases(inputs, make)


def mkl(library: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """cblas_sgemm_pack once, then cblas_sgemm_compute."""
    lib = ctypes.CDLL(library)
    lib.MKL_Set_Num_Threads(threads)
    lib.cblas_sgemm_pack_get_size.restype = ctypes.c_size_t
    one, zero = ctypes.c_float(1), ctypes.c_float(0)

    def make(case: str):
        m, n, k = sizes(case)
        a, b = matrices(case)
        c = np.empty((m, n), np.float32)
        packed = np.empty(lib.cblas_sgemm_pack_get_size(_B_MATRIX, m, n, k) + 64, np.int8)
        aligned = ctypes.c_void_p(-(-packed.ctypes.data // 64) * 64)
        lib.cblas_sgemm_pack(
            *(_ROWS, _B_MATRIX, _AS_IS, m, n, k, one, ctypes.c_void_p(b.ctypes.data), n, aligned)
        )
        pointers = ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(c.ctypes.data)

        def run() -> np.ndarray:
            lib.cblas_sgemm_compute(
                *(_ROWS, _AS_IS, _PACKED, m, n, k, pointers[0], k, aligned, n, zero),
                *(pointers[1], n),
            )
            return c

        run.keeps = a, packed
        return run

    return _cases(inputs, make)


def onednn(library: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """oneDNN's matmul, whose weights are reordered once to the layout that it asks for."""
    lib = ctypes.CDLL(library)
    lib.dnnl_primitive_desc_query_md.restype = ctypes.c_void_p

    def made(create: str, *arguments) -> ctypes.c_void_p:
        result = ctypes.c_void_p()
        status = getattr(lib, create)(ctypes.byref(result), *arguments)
        if status:
            raise RuntimeError(f"{create}: status {status}")
        return result

    engine = made("dnnl_engine_create", _CPU, ctypes.c_size_t(0))
    stream = made("dnnl_stream_create", engine, 1)

    def desc(shape: tuple[int, int], tag: int) -> ctypes.c_void_p:
        return made("dnnl_memory_desc_create_with_tag", 2, (ctypes.c_int64 * 2)(*shape), _F32, tag)

    def execute(primitive, memories: dict) -> None:
        arguments = (_Argument * len(memories))(*((k, v.value) for k, v in memories.items()))
        lib.dnnl_primitive_execute(primitive, stream, len(arguments), arguments)
        lib.dnnl_stream_wait(stream)

    def make(case: str):
        m, n, k = sizes(case)
        a, b = matrices(case)
        c = np.empty((m, n), np.float32)
        src, plain, dst = desc((m, k), _AB), desc((k, n), _AB), desc((m, n), _AB)
        product = made(
            *("dnnl_matmul_primitive_desc_create", engine, src, desc((k, n), _ANY), None, dst),
            None,
        )
        wanted = ctypes.c_void_p(lib.dnnl_primitive_desc_query_md(product, _WEIGHTS_MD, 0))
        packed = made("dnnl_memory_create", wanted, engine, _ALLOCATE)
        reorder = made("dnnl_reorder_primitive_desc_create", plain, engine, wanted, engine, None)
        memory_of_b = made("dnnl_memory_create", plain, engine, ctypes.c_void_p(b.ctypes.data))
        execute(made("dnnl_primitive_create", reorder), {_SRC: memory_of_b, _DST: packed})
        primitive = made("dnnl_primitive_create", product)
        memories = {
            _SRC: made("dnnl_memory_create", src, engine, ctypes.c_void_p(a.ctypes.data)),
            _WEIGHTS: packed,
            _DST: made("dnnl_memory_create", dst, engine, ctypes.c_void_p(c.ctypes.data)),
        }

        def run() -> np.ndarray:
            execute(primitive, memories)
            return c

        run.keeps = a
        return run

    return _cases(inputs, make)


_OPENMP = {"OMP_NUM_THREADS": "{threads}"}
PEERS = {
    "tf_blockdnn": Peer("tf_blockdnn", tf_blockdnn, ("tf_blockdnn", "tensorflow")),
    "onednn": Peer("oneDNN, packed", onednn, (), _OPENMP, venv="onednn"),
    "mkl": Peer("MKL, packed", mkl, (), _OPENMP, venv="mkl"),
    "openblas": Peer("OpenBLAS", openblas, ("numpy",), {"OPENBLAS_NUM_THREADS": "{threads}"}),
}
# Peer -> its library in its environment.
LIBRARIES = {"onednn": "lib/libdnnl.so", "mkl": "lib/libmkl_rt.so.3"}
