"""What a child may take is counted anew for each case: TensorFlow keeps some memory of each."""

import mmap

import children

_kept = []


def _keep(size):
    if size is not None:
        _kept.append(mmap.mmap(-1, size))
    return None


def test_memory_is_of_one_case():
    half, three = 1 << 30, 3 << 30
    results = children.run(_keep, [half, half, half, three], workers=1)
    assert [result for _, result in results[:3]] == [None] * 3
    assert results[3][1].startswith("raised OSError")
