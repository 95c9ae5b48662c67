"""The child process that reads one bad input after the other and says what came of each.

``jail`` starts it and talks to it in lines of JSON.  An input that crashes the interpreter ends
this process and not the tests.  Its memory is limited, and so are the seconds of processor time of
an input.  An audit hook tells of what reading must never do: write or remove a file, start a
program, open a connection, look up a name for a pickle.  A warning counts as an exception, since a
user would see it between the lines of the program.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

import pytest

from sundsbo_mpi.errors import DataNote, UsageError

MEMORY = 2 * 2**30
"""Bytes that may be asked for beyond what the libraries take; a claim of more must be refused."""
SECONDS = 20
"""Of processor time, for one input."""
FORBIDDEN = {
    *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.system", "os.exec", "os.fork", "os.posix_spawn"),
    *("subprocess.Popen", "socket.connect", "socket.bind", "socket.getaddrinfo"),
    *("pickle.find_class", "shutil.copyfile", "shutil.move", "shutil.rmtree"),
}
seen: list[str] = []


def watch(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        if writes and not str(path).startswith("/dev/"):
            seen.append(f"open {path!r} {mode!r}")
    elif event in FORBIDDEN:
        seen.append(f"{event} {arguments!r:.200}")


def topology(path, form=None, weights=None, undirected=False):
    from sundsbo_mpi.topology import Reading, read_weights

    loaded = read_weights(path, Reading(form, weights, undirected))
    mixing = loaded.weights
    # What a run asks of it.
    assert mixing.rho < 1
    assert mixing.links(0).own >= 0
    assert mixing.sha256
    return [*loaded.notes, mixing.description]


def data(name, folder):
    from sundsbo_mpi.datasets import DATASETS, load_characters, load_dataset

    if name in DATASETS:
        found = load_dataset(name, folder, seed=0)
        assert found.train.labels.max(initial=0) < found.classes
    else:
        load_characters(name, folder, seed=0, size=7)
    return []


def settings(file=None, sets=()):
    from sundsbo_mpi.algorithms import Horizon, method
    from sundsbo_mpi.config.resolving import Request, resolve
    from sundsbo_mpi.tasks import load_task

    config = resolve(Request(sets=tuple(sets), file=file))
    entry = method(config.algorithm["name"])
    entry.build(entry.options(**config.algorithm_options), Horizon(5, config.run.iterations or 1))
    if config.task["name"] in ("quadratic", "toy"):
        load_task(config.task["name"])(agent=0, agents=5, seed=0, **config.task_options)
    json.dumps(config.as_dict(), allow_nan=False)  # as it goes into the run file
    return []


def command(arguments):
    """Call a subcommand as the command line does; what it prints is the answer."""
    from importlib import import_module

    module = import_module(f"sundsbo_mpi.cli.{arguments[0]}")
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        module.command.main(arguments[1:], standalone_mode=False)
    return out.getvalue().splitlines()


KINDS = {reader.__name__: reader for reader in (topology, data, settings, command)}


def small_data_sets():
    """Know small data sets by the names of the large ones, whatever their checksums."""
    from stored_data import cifar_set, idx_set

    patch = pytest.MonkeyPatch()
    idx_set(patch, "mnist")
    cifar_set(patch)
    for module in ("idx", "cifar"):
        patch.setattr(f"sundsbo_mpi.datasets.{module}.require_known", lambda *_: None)


def judge(kind, request):
    """Return what came of an input: "read", "refused" or "raised", and the lines to be seen."""
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("error")
        warnings.simplefilter("always", DataNote)
        try:
            lines = KINDS[kind](**request)
        except UsageError as error:
            # Only what compares several files has a line for each of them.
            return "refused", str(error).splitlines() if kind == "command" else [str(error)]
        except BaseException:
            return "raised", [traceback.format_exc()[-3000:]]
    return "read", [*lines, *(str(note.message) for note in notes)]


def serve(requests, replies):
    for line in requests:
        request = json.loads(line)
        seen.clear()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # whose signal ends the process
        outcome, lines = judge(request.pop("kind"), request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        answer = {"outcome": outcome, "lines": lines, "grown": grown, "did": list(seen)}
        replies.write(json.dumps(answer) + "\n")
        replies.flush()


def main():
    faulthandler.enable()
    faulthandler.register(signal.SIGPROF, chain=True)
    # Whatever is printed goes to the standard error, and answers to where it went.
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for module in sys.argv[1:]:
        __import__(module)
    small_data_sets()
    sys.addaudithook(watch)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
