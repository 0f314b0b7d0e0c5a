"""Runs cases in child processes, since a case may end its process, eat memory or never return."""

import multiprocessing
import os
import resource
import signal
import sys
import threading

_MEMORY = 2 << 30  # bytes that a case may take on top of what its child has
_CPU_SECONDS = 30  # of one case
_WALL_SECONDS = 300


def _serve(function, connection):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    function(None)  # starts TensorFlow
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # TensorFlow logs what it refuses
    connection.send("ready")
    while True:
        case = connection.recv()
        with open("/proc/self/statm") as sizes:
            limit = int(sizes.read().split()[0]) * resource.getpagesize() + _MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        usage = resource.getrusage(resource.RUSAGE_SELF)
        most = int(usage.ru_utime + usage.ru_stime) + _CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        try:
            result = function(case)
        except Exception as error:
            result = f"raised {type(error).__name__}: {str(error)[:500]}"
        connection.send(result)


def _start(contexts, function):
    ours, theirs = contexts.Pipe()
    process = contexts.Process(target=_serve, args=(function, theirs), daemon=True)
    process.start()
    theirs.close()
    ours.recv()
    return process, ours


def _take(contexts, function, cases, results):
    process = None
    for case in cases:
        if process is None:
            process, connection = _start(contexts, function)
        connection.send(case)
        try:
            if not connection.poll(_WALL_SECONDS):
                raise TimeoutError
            results.append((case, connection.recv()))
        except (EOFError, ConnectionResetError):
            process.join()
            number = -process.exitcode
            name = signal.Signals(number).name if number > 0 else f"exit({process.exitcode})"
            results.append((case, f"died: {name}"))
            process = None
        except TimeoutError:
            results.append((case, f"did not return within {_WALL_SECONDS} s"))
            process.kill()
            process.join()
            process = None
    if process is not None:
        process.kill()
        process.join()


def run(function, cases, workers=2):
    """Pairs of a case and what function(case) returned, or a text that says what it raised or how
    its child ended.

    `function` belongs to a module; function(None) starts what it needs.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the server, which imports the module
    contexts = multiprocessing.get_context("forkserver")
    contexts.set_forkserver_preload([function.__module__])
    results, threads, left = [], [], iter(cases)
    lock = threading.Lock()

    def shared():
        while True:
            with lock:
                case = next(left, None)
            if case is None:
                return
            yield case

    for _ in range(workers):
        arguments = (contexts, function, shared(), results)
        threads.append(threading.Thread(target=_take, args=arguments))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return results


def check(function, cases, workers=2):
    """What function(case) returned for each, in their order; the last of it says what is wrong.

    That is None where nothing is. Fails with the cases that are wrong.
    """
    results = run(function, cases, workers)
    findings = [(case, r if isinstance(r, str) else r[-1]) for case, r in results]
    wrong = sorted(f"{case}: {finding}" for case, finding in findings if finding is not None)
    report = "\n".join(wrong[:30])
    assert not wrong, f"{len(wrong)} of {len(cases)} cases, by {function.__module__}:\n{report}"
    found = dict(results)
    return [found[case] for case in cases]
