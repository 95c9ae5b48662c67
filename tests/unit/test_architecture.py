"""Who may import whom, and how long things may get."""

import ast
import functools
from pathlib import Path

import pytest
import together

import sundsbo_mpi

ROOT = Path(sundsbo_mpi.__file__).parent
MODULES = {p.relative_to(ROOT).with_suffix("").as_posix(): p for p in sorted(ROOT.rglob("*.py"))}
MATHEMATICS = ("composition", "algorithms")
"""Packages."""
MODULE_LINES, FUNCTION_LINES = 250, 40
"""A module has at most so many, a function fewer."""
LAYERS = [
    name
    for row in (
        "errors durable clock randomness versions heap lazily wording texttable csvfile statistics",
        "data_notes options",
        "outgoing runfile metric_names topology datasets",
        "tasks composition algorithms",
        "comm config ranks",
        "diagnosis agent checkpoint measuring tracing",
        "summary pictures batch",
        "running library",
        "bench compare exporting taskcheck report following campaign",
        "reproduce sweep",
        "cli",
    )
    for name in row.split()
]
"""Packages and modules of the first level: each imports what stands before it alone."""


def for_types_only(node):
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


@functools.cache
def tree_of(module):
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def imports(module, types_too=False):
    """Return what a module imports, anywhere in it, as full names of modules or their members."""
    found = set()
    waiting = [tree_of(module)]
    while waiting:
        node = waiting.pop()
        if for_types_only(node) and not types_too:
            waiting.extend(node.orelse)
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} uses a relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        waiting.extend(ast.iter_child_nodes(node))
    return found


def uses(module, *packages, types_too=False):
    """Return which of the packages a module imports."""
    own = [name.split(".")[1] for name in packages if name.startswith("sundsbo_mpi.")]
    assert set(own) <= set(LAYERS), "a package that is not there is not imported either"
    return {
        package
        for package in packages
        for name in imports(module, types_too)
        if f"{name}.".startswith(f"{package}.")
    }


def in_folder(*folders):
    return [m for m in MODULES if m.startswith(tuple(f"{folder}/" for folder in folders))]


def mathematics():
    return [m for m in MODULES if m.split("/")[0] in MATHEMATICS]


def test_the_modules_are_found():
    assert {*mathematics(), "algorithms/base", "comm/gossip", "tasks/toy"} <= set(MODULES)
    assert uses("comm/tally", "mpi4py") == {"mpi4py"}


def test_only_the_network_imports_mpi():
    users = {m for m in MODULES if uses(m, "mpi4py")}
    assert users <= set(in_folder("comm"))
    users = {m for m in MODULES if uses(m, "mpi4py", types_too=True)}
    assert users <= {*in_folder("comm", "cli", "library", "ranks", "running")}


@pytest.mark.parametrize("module", MODULES)
def test_every_layer_knows_those_below_alone(module):
    """Also where only a type is named: no two packages need each other."""
    first = module.split("/")[0]
    if first in ("__init__", "__main__"):
        return
    above = LAYERS[LAYERS.index(first) + 1 :]
    assert not uses(module, *(f"sundsbo_mpi.{name}" for name in above), types_too=True)


def test_the_layers_are_all_there_is():
    assert sorted({m.split("/")[0] for m in MODULES} - {"__init__", "__main__"}) == sorted(LAYERS)


@pytest.mark.parametrize("module", mathematics())
def test_the_mathematics_knows_no_network_no_files_and_no_command(module):
    others = (
        "comm",
        "ranks",
        "agent",
        "running",
        "config",
        "cli",
        "runfile",
        "topology",
        "measuring",
    )
    assert not uses(module, *(f"sundsbo_mpi.{other}" for other in others), types_too=True)


@pytest.mark.parametrize("module", mathematics())
def test_the_mathematics_can_be_listed_without_torch(module):
    at_the_top = {
        name
        for node in tree_of(module).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
    }
    assert not any(f"{name}.".startswith("torch.") for name in at_the_top)


@pytest.mark.parametrize("module", in_folder("tasks"))
def test_tasks_know_no_method_and_no_network(module):
    others = ("comm", "agent", "running", "cli", "measuring", *MATHEMATICS)
    assert not uses(module, *(f"sundsbo_mpi.{other}" for other in others), types_too=True)


@pytest.mark.parametrize("module", in_folder("comm"))
def test_the_network_knows_no_method_and_no_task(module):
    others = ("tasks", "agent", "running", "cli", "measuring", *MATHEMATICS)
    assert not uses(module, *(f"sundsbo_mpi.{other}" for other in others), types_too=True)


@pytest.mark.parametrize("module", in_folder("datasets"))
def test_data_sets_know_no_task_no_method_no_network_and_no_torch(module):
    others = ("tasks", "comm", "agent", "running", "cli", "measuring", "config", *MATHEMATICS)
    assert not uses(module, "torch", *(f"sundsbo_mpi.{other}" for other in others), types_too=True)


@pytest.mark.parametrize("module", in_folder("topology", "runfile"))
def test_files_know_no_network_and_no_torch(module):
    others = ("comm", "agent", "running", "cli", "tasks", *MATHEMATICS)
    assert not uses(module, "torch", *(f"sundsbo_mpi.{other}" for other in others))


def test_nothing_is_pickled_or_evaluated():
    for module in MODULES:
        assert not uses(module, "pickle", "dill", "cloudpickle", "marshal", "shelve"), module
        for node in ast.walk(tree_of(module)):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            assert not (called and node.func.id in ("eval", "exec")), module


@pytest.mark.parametrize("module", MODULES)
def test_modules_and_functions_are_short(module):
    text = MODULES[module].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MODULE_LINES
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno + 1 < FUNCTION_LINES, node.name


def test_the_tally_of_the_tests_has_the_members_of_the_real_one():
    tree = tree_of("comm/tally")
    (tally,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Tally")
    members = {f.name: [a.arg for a in f.args.args] for f in tally.body if hasattr(f, "args")}
    for name, arguments in members.items():
        if not name.startswith("_"):
            own = getattr(together.ThreadTally, name)
            own = own.fget if isinstance(own, property) else own
            assert list(own.__code__.co_varnames[: own.__code__.co_argcount]) == arguments, name
