"""Packed weights in files: packed once a machine, shared by processes, and never trusted."""

import os
import pathlib
import shutil
import subprocess
import sys

import fresh
import keras
import numpy as np
import pytest

import tf_blockdnn as bd

_PROGRAM = """
import os, pathlib, sys, zlib, numpy as np, tf_blockdnn as bd

def load_and_call():
    fast = bd.load(sys.argv[1])
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 256)).astype(np.float32)
    return fast, zlib.crc32(next(iter(fast(x).values())).numpy().tobytes())

def call():
    return load_and_call()[1]

def say():
    held, result = load_and_call()
    maps = {line.split()[-1] for line in open("/proc/self/maps")}
    mapped = sum(pathlib.Path(name).parent.parent.name == sys.argv[2] for name in maps)
    print(result, bd.python.native.c_library().BlockdnnPackCount(), mapped)

def fork(function):  # before TensorFlow has threads
    child = os.fork()
    if child == 0:
        function()
        os._exit(0)
    return child

def wait(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    convs = [keras.layers.Conv2D(256, 3, activation="relu") for _ in range(2)]  # 2.25 MiB each
    place = tmp_path_factory.mktemp("written")
    bd.optimize(keras.Sequential([keras.Input((8, 8, 256)), *convs])).save(place / "fast")
    return place / "fast"


@pytest.fixture
def saved(written, tmp_path):
    """Without packed weights, whatever other tests wrote."""
    shutil.copytree(written, tmp_path / "fast", ignore=shutil.ignore_patterns("*.packed"))
    return tmp_path / "fast"


@pytest.fixture(scope="module")
def first(written, tmp_path_factory):
    """What the first process wrote, and its result."""
    place = tmp_path_factory.mktemp("first") / "fast"
    shutil.copytree(written, place)
    (result, packs, mapped), _ = _run(place)
    assert packs == mapped == len(_files(_place(place))) == 2
    return place, result


@pytest.fixture
def packed(first, tmp_path):
    """A copy of that, with its result."""
    place, result = first
    shutil.copytree(place, tmp_path / "packed")
    return tmp_path / "packed", result


def _place(saved) -> pathlib.Path:
    return saved / "assets" / "blockdnn_weights.packed"


def _files(place) -> list[pathlib.Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def _run(saved, program="say()", **environ) -> tuple[list[int], str]:
    """The numbers that a process prints last, here a result, how often weights were packed, and how
    many files of packed ones are mapped; and its log."""
    arguments = saved, _place(saved).name
    done = fresh.run(_PROGRAM + program, *arguments, environ={**os.environ, **environ})
    return list(map(int, done.stdout.splitlines()[-1].split())), done.stderr


def _run_and_log(saved, **environ) -> tuple[list[int], str]:
    """The same of a process that logs: TensorFlow reads at its import what it shall log."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM + "say()", str(saved), _place(saved).name],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "1", **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    return list(map(int, done.stdout.splitlines()[-1].split())), done.stderr


def test_the_second_process_packs_nothing(packed):
    saved, result = packed  # and a copy of the model has them
    assert _run(saved)[0] == [result, 0, 2]
    assert _run(saved, TF_BLOCKDNN_CACHE="0")[0] == [result, 2, 0]


def test_pages_count_once(packed):
    program = """
ready, done = os.pipe(), os.pipe()
child = fork(lambda: (load_and_call(), os.write(ready[1], b"1"), os.read(done[0], 1)))
os.read(ready[0], 1)
held = load_and_call()
total = {"Rss:": 0, "Pss:": 0}
for line in open("/proc/self/smaps"):
    key, *rest = line.split()
    if not key.endswith(":"):
        ours = sys.argv[2] in line
    elif ours and key in total:
        total[key] += int(rest[0])
os.write(done[1], b"1")
assert wait(child) == 0
print(*total.values())
"""
    (resident, share), _ = _run(packed[0], program)
    assert resident > 4 << 10 and share < 0.55 * resident


@pytest.mark.parametrize("damage", ["bit", "short", "empty", "trailer", "folder"])
def test_a_file_that_is_not_right_is_packed_anew(packed, damage):
    saved, result = packed
    whole = {path: path.read_bytes() for path in _files(_place(saved))}
    path = next(iter(whole))
    path.chmod(0o644)
    if damage == "folder":
        path.unlink()
        path.mkdir()
        (path / "inside").touch()
    elif damage in ("bit", "trailer"):
        content = bytearray(whole[path])
        content[len(content) // 2 if damage == "bit" else -20] ^= 1
        path.write_bytes(content)
    else:
        os.truncate(path, 0 if damage == "empty" else len(whole[path]) - 4096)
    assert _run(saved)[0] == [result, 1, 1 if damage == "folder" else 2]
    if damage != "folder":
        assert {path: path.read_bytes() for path in _files(_place(saved))} == whole


@pytest.mark.parametrize("change", ["owner", "mode", "link"])
def test_what_others_may_have_written_is_not_read(packed, change, tmp_path):
    if change == "owner" and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    saved, result = packed
    path, *_ = _files(_place(saved))
    if change == "owner":
        os.chown(path, 12345, -1)
    elif change == "mode":
        path.chmod(0o666)
    else:
        path.symlink_to(shutil.move(path, tmp_path / "elsewhere"))
    assert _run(saved)[0] == [result, 1, 1]


def test_other_instructions_and_builds_have_folders_of_their_own(packed):
    saved, result = packed
    (ours,) = _place(saved).iterdir()
    assert _run(saved, TF_BLOCKDNN_MAX_ISA="generic")[0][1:] == [2, 2]
    assert len(list(_place(saved).iterdir())) == 2
    ours.rename(ours.with_name(ours.name[:-1] + "?"))  # As another build would have left it.
    assert _run(saved)[0] == [result, 2, 2]
    assert ours in _place(saved).iterdir() and len(list(_place(saved).iterdir())) == 2


def test_other_weights_read_none_of_them(packed):
    saved, _ = packed
    (asset,) = (path for path in (saved / "assets").iterdir() if path.is_file())
    values = np.fromfile(asset, np.float32)
    (-values).tofile(asset)
    before = _run(saved, TF_BLOCKDNN_CACHE="0")[0][0]
    assert _run(saved)[0] == [before, 2, 2]


def test_a_folder_that_the_environment_names(saved, first, tmp_path):
    result, cache = first[1], tmp_path / "cache"
    for packs in (2, 0):
        assert _run(saved, TF_BLOCKDNN_CACHE=str(cache))[0][:2] == [result, packs]
    assert len(_files(cache)) == 2 and not _place(saved).exists()
    got, log = _run_and_log(saved, TF_BLOCKDNN_CACHE=str(_files(cache)[0]))  # which is none
    assert got[:2] == [result, 2]
    assert log.count("stay in this process's memory") == 1 and "Not a directory" in log


@pytest.mark.parametrize("option, why", [("size=6m", "no room"), ("ro", "Read-only file system")])
def test_a_disk_that_takes_nothing(saved, first, tmp_path, option, why):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", option, "none", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root mounts")
    try:
        got, log = _run_and_log(saved, TF_BLOCKDNN_CACHE=str(small))
        assert got[:2] == [first[1], 2]
        assert log.count("stay in this process's memory") == 1 and why in log
        assert not [path for path in _files(small) if path.name.startswith("part")]
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_ten_at_once(saved, first):
    program = """
read, write = os.pipe()
children = [fork(lambda: os.write(write, b"%12d" % call())) for _ in range(10)]
assert not any(map(wait, children))
print(*{int(os.read(read, 12)) for _ in children})
"""
    assert _run(saved, program)[0] == [first[1]]
    assert len(_files(_place(saved))) == 2
    assert _run(saved)[0] == [first[1], 0, 2]


def test_writers_that_are_killed_leave_nothing_that_is_read(saved, first):
    program = """
import shutil, signal, time
begin = time.monotonic()
assert wait(fork(call)) == 0
whole = time.monotonic() - begin
read, write = os.pipe()
results = set()
for turn in range(6):
    shutil.rmtree(f"{sys.argv[1]}/assets/{sys.argv[2]}")
    child = fork(call)
    time.sleep(whole * (turn + 5) / 12)
    os.kill(child, signal.SIGKILL)
    wait(child)
    os.makedirs(f"{sys.argv[1]}/assets/{sys.argv[2]}", exist_ok=True)
    assert wait(fork(lambda: os.write(write, b"%12d" % call()))) == 0
    results.add(int(os.read(read, 12)))
print(*results)
"""
    assert _run(saved, program)[0] == [first[1]]


def test_saving_in_their_place_removes_them(packed, written):
    saved, _ = packed
    assert _place(saved).exists()
    bd.load(written).save(saved)
    assert not _place(saved).exists()
