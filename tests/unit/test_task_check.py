"""The checker finds what is wrong with a task, says it in one sentence, and finds no more."""

import warnings

import pytest
import torch
from click.testing import CliRunner

from sundsbo_mpi.cli.task import command
from sundsbo_mpi.errors import DataNote, UsageError
from sundsbo_mpi.taskcheck import Verdict, check_task

GOOD = '''
import numpy as np
import torch


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, slope):
        return slope


class Dropping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        ctx.value = value.detach()
        return value.square()

    @staticmethod
    def backward(ctx, slope):
        return 2 * ctx.value * slope


class Raising(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value):
        return value.clone()

    @staticmethod
    def backward(ctx, slope):
        if torch.is_grad_enabled():
            raise RuntimeError("only once")
        return slope


class Good:
    """Has every optional member; the tests break one thing at a time."""

    single_level_variables = ("y",)

    def __init__(self, *, agent, agents, seed, shard, noise=0.1):
        self.agent = agent
        self.key = [seed, agent]
        self.rows = torch.from_numpy(shard["rows"])
        self.sizes = {{"x": 2 * agents, "y": 3}}
        self.private = slice(2 * agent, 2 * agent + 2)
        self.to(torch.device("cpu"), torch.get_default_dtype())
        self.made()

    def made(self):
        pass

    @staticmethod
    def shards(*, agents, seed, noise):
        rng = np.random.default_rng(seed)
        return [{{"rows": rng.standard_normal((6, 3))}} for _ in range(agents)]

    def to(self, device, dtype):
        self.rows = self.rows.to(device, dtype)

    def start(self):
        return self.rows.new_zeros(self.sizes["x"]), self.rows.new_zeros(3)

    def sample(self, k, draw=0):
        rng = np.random.default_rng([*self.key, k, draw])
        return rng.choice(6, 3, replace=False)

    def everything(self):
        return np.arange(6)

    def upper(self, x, y, batch):
        return (self.rows[batch] @ y - 1).square().mean() + y.square().sum()

    def lower(self, x, y, batch):
        weights = x[self.private].exp()
        return weights.sum() * y.square().sum() - (self.rows[batch] @ y).mean()

    def single_level(self, x, y, batch):
        return self.upper(x, y, batch)

    def saddle(self, x, y, theta, batch, penalty):
        mu, gamma = penalty
        away = (theta - y) / gamma
        x, y, theta = (v.detach().requires_grad_() for v in (x, y, theta))
        S = mu * self.upper(x, y, batch) + self.lower(x, y, batch) - self.lower(x, theta, batch)
        S_x, S_y, S_theta = torch.autograd.grad(S, (x, y, theta), materialize_grads=True)
        return S_x, S_y + away, away - S_theta

    def reference(self, mu, gamma):
        return {{"bilevel": {{"y": self.rows.new_zeros(3)}}}}

    def report(self, x, y):
        return {{"loss": 1.0, "share": (1.0, 2), "weight": x.numpy()}}

    @staticmethod
    def summarise(arrays):
        return {{"weight": float(np.mean(arrays["weight"]))}}


class Broken(Good):
    """The one that is checked."""

    {broken}
'''


@pytest.fixture
def checked(tmp_path):
    """Check the good task with some members broken; return the findings by name."""

    def checked(broken="pass", agents=2, sets=()):
        # A name of its own, since the module of a name is loaded once.
        path = tmp_path / f"task_{abs(hash(broken))}.py"
        path.write_text(GOOD.format(broken=broken.replace("\n", "\n    ")))
        return {f.what: f for f in check_task(f"{path}:Broken", agents, sets)}

    return checked


def failures(findings):
    return [what for what, finding in findings.items() if finding.verdict is Verdict.FAIL]


def test_a_good_task_passes_in_all(checked):
    findings = checked(sets=["task.noise=0.5"])
    assert {finding.verdict for finding in findings.values()} == {Verdict.PASS}
    assert findings["options"].said == "noise=0.5"
    assert findings["sizes"].said == "x 4, y 3"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torchs_default_dtype_is_afterwards_what_it_was(dtype):
    torch.set_default_dtype(dtype)
    try:
        check_task("toy", 1)
        assert torch.get_default_dtype() == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_is_optional_may_be_absent(tmp_path):
    path = tmp_path / "bare.py"
    path.write_text(
        """
import torch


class Bare:
    sizes = {"x": 1, "y": 1}

    def __init__(self, *, agent, agents, seed):
        self.agent = agent

    def start(self):
        return torch.zeros(1), torch.zeros(1)

    def sample(self, k, draw=0):
        return k + draw

    def upper(self, x, y, batch):
        return (y - self.agent).square().sum() + batch * x.square().sum()

    def lower(self, x, y, batch):
        return (y - x).square().sum()

    def report(self, x, y):
        return {}
"""
    )
    findings = check_task(f"{path}:Bare", 3)
    absent = {f.what for f in findings if f.verdict is Verdict.ABSENT}
    optional = {"shards", "to", "saddle", "single_level", "private", "everything", "reference"}
    assert absent == optional
    assert {f.verdict for f in findings} == {Verdict.PASS, Verdict.ABSENT}


BROKEN = {
    "a method's arguments": (
        "def sample(self, k): return 0",
        "options",
        r"expected sample\(self, k, draw\)",
    ),
    "shards of an instance": ("def shards(self): return []", "shards", "write @staticmethod"),
    "too few shards": (
        "@staticmethod\ndef shards(**_): return [{}]",
        "shards",
        "has 1 shard for 2 agents: return or yield one for each agent",
    ),
    "too many shards": (
        "@staticmethod\ndef shards(**_):\n    while True: yield {}",
        "shards",
        "has more than 2 shards for 2 agents: return or yield one for each agent",
    ),
    "lists in shards": (
        "@staticmethod\ndef shards(*, agents, **_): return [{'rows': [1.0]}] * agents",
        "shards",
        "has list for agent 0: expected a dict of numpy arrays",
    ),
    "shards by luck": (
        "@staticmethod\ndef shards(*, agents, **_):\n"
        "    return [{'rows': np.random.default_rng().standard_normal((6, 3))}] * agents",
        "shards",
        "divides the data otherwise when it is called again",
    ),
    "a constructor that raises": (
        "def made(self): raise ValueError('no such\\nfile')",
        "constructor",
        "raised ValueError: no such file; the traceback is below",
    ),
    "sizes apart": (
        "def made(self): self.sizes['y'] += self.agent",
        "sizes",
        "agent 1 has another mapping sizes than agent 0, {",
    ),
    "a start apart": (
        "def start(self):\n"
        "    x = self.rows.new_full((self.sizes['x'],), self.agent)\n"
        "    return x, self.rows.new_zeros(3)",
        "equal starts",
        r"agent 1 has another start\(\) than agent 0: draw it",
    ),
    "a start by luck": (
        "def start(self):\n    self.n = getattr(self, 'n', 0.0) + 1\n"
        "    return torch.full((self.sizes['x'],), self.n), torch.zeros(3)",
        "start",
        "something else when it is called again",
    ),
    "a start in float32": (
        "def start(self):\n"
        "    return torch.zeros(self.sizes['x'], dtype=torch.float32), torch.zeros(3)",
        "start",
        "torch.float32 on cpu: expected shape",
    ),
    "to forgets the data": (
        "def to(self, device, dtype):\n    self.rows = self.rows.double()",
        "to",
        "expected shape .* torch.float32",
    ),
    "a generator that goes on": (
        "def sample(self, k, draw=0):\n"
        "    self.rng = getattr(self, 'rng', None) or np.random.default_rng(0)\n"
        "    return self.rng.choice(6, 3)",
        "sample",
        r"returns another batch when called again",
    ),
    "a stream of its own": (
        "counter = [0]\n\ndef made(self): self.counter[0] += 1; self.key.append(self.counter[0])",
        "sample",
        "another batch when of a task that is built again",
    ),
    "a batch with a graph": (
        "def sample(self, k, draw=0):\n"
        "    return super().sample(k, draw), torch.ones(3, requires_grad=True)\n"
        "def upper(self, x, y, batch): return super().upper(x, y, batch[0])\n"
        "def lower(self, x, y, batch): return super().lower(x, y, batch[0])\n"
        "def everything(self): return [np.arange(6)]",
        "sample",
        "requires gradients",
    ),
    "a vector": (
        "def upper(self, x, y, batch): return y",
        "upper",
        r"returns \(3,\): expected a scalar",
    ),
    "a float": ("def lower(self, x, y, batch): return 1.0", "lower", "returns float: expected"),
    "a loss of nothing": (
        "def upper(self, x, y, batch): return torch.ones(())",
        "upper",
        "depends on neither x nor y",
    ),
    "a detached factor": (
        "def upper(self, x, y, batch):\n"
        "    return (self.rows[batch] @ y.detach() - 1).square().mean() * (y + 1).square().sum()",
        "upper",
        "by differences of its values",
    ),
    "a small part that is detached": (
        "def lower(self, x, y, batch):\n"
        "    return super().lower(x, y, batch) + 1e-3 * x.detach().square().sum()",
        "lower",
        "along a random direction of x by its gradient",
    ),
    "float32 on the way": (
        "def upper(self, x, y, batch): return super().upper(x, y.float().double(), batch)",
        "upper",
        "rounded on the way",
    ),
    "a loss in float32": (
        "def upper(self, x, y, batch): return super().upper(x, y, batch).float()",
        "upper",
        "returns torch.float32 where x and y are torch.float64",
    ),
    "dropout": (
        "def lower(self, x, y, batch): return super().lower(x, y, batch) * torch.rand(())",
        "lower",
        "take dropout and the like out of it",
    ),
    "no finite loss": (
        "def upper(self, x, y, batch): return super().upper(x, y, batch).neg().log()",
        "upper",
        r"upper\(\) of agent 0 is not finite",
    ),
    "no finite gradient": (
        "def upper(self, x, y, batch): return (y * 0).square().sum().sqrt() + y.sum()",
        "upper",
        r"the gradient of upper\(\) in y of agent 0 is not finite",
    ),
    "a loss that raises": (
        "def lower(self, x, y, batch): return self.missing",
        "lower",
        "raised AttributeError: .* no attribute 'missing'",
    ),
    "a saddle of another sign": (
        "def saddle(self, *args):\n    D_x, D_y, D_theta = super().saddle(*args)\n"
        "    return D_x, D_y, -D_theta",
        "saddle",
        r"has D_theta that differs from that of upper\(\) and lower\(\)",
    ),
    "a saddle that forgets mu": (
        "def saddle(self, *args):\n"
        "    return super().saddle(*args[:-1], args[-1]._replace(mu=0.0))",
        "saddle",
        "has D_y that differs",
    ),
    "a saddle without its proximal term": (
        "def saddle(self, *args):\n"
        "    return super().saddle(*args[:-1], args[-1]._replace(gamma=float('inf')))",
        "saddle",
        "has D_y that differs",
    ),
    "a saddle with one tensor for ever": (
        "def saddle(self, *args):\n    found = super().saddle(*args)\n"
        "    self.kept = getattr(self, 'kept', {})\n"
        "    return self.kept.setdefault(args[-1], found)",
        "saddle",
        "something else after its result was overwritten",
    ),
    "nothing to train": (
        "single_level_variables = ('z',)",
        "single_level",
        "expected which of x and y",
    ),
    "a wrong ordinary loss": (
        "def single_level(self, x, y, batch): return y.detach().square().sum() * y.sum()",
        "single_level",
        r"single_level\(\) of the task has the slope",
    ),
    "a block of another": (
        "def made(self): self.private = slice(0, 2)",
        "private",
        "expected blocks that together are 0 to 4",
    ),
    "a loss that meddles": (
        "def lower(self, x, y, batch): return super().lower(x, y, batch) + x.sum()",
        "private",
        "depends on coordinates of x outside the agent's own",
    ),
    "everything by luck": (
        "def everything(self): return np.random.default_rng().choice(6, 6)",
        "everything",
        "something else when it is called again",
    ),
    "nothing of everything": (
        "def everything(self): return np.arange(0)",
        "everything",
        r"upper\(\) on everything\(\) of agent 0 is not finite",
    ),
    "a reference too long": (
        "def reference(self, mu, gamma): return {'a': {'y': self.rows.new_zeros(4)}}",
        "reference",
        r"has 'y' of shape \(4,\) in 'a'",
    ),
    "references apart": (
        "def reference(self, mu, gamma): return {'a': {'y': self.rows[0]}}",
        "reference",
        r"agent 1 has another reference\(\) than agent 0: make",
    ),
    "a report of words": ("def report(self, x, y): return {'a': 'b'}", "report", "'a': 'b'"),
    "reports apart": (
        "def report(self, x, y): return {f'loss_{self.agent}': 1.0}",
        "report",
        r"agent 1 has another report\(\) than agent 0, \[\('loss_1', 'float'\)\] and not",
    ),
    "arrays without a summary": ("summarise = property()", "report", "no method summarise"),
    "a summary of pairs": (
        "@staticmethod\ndef summarise(arrays): return {'a': (1.0, 2)}",
        "report",
        r"summarise\(\) of the task returns .*: expected floats",
    ),
    "x in place": (
        "def report(self, x, y):\n    x += 1\n    return {}",
        "arguments",
        r"report\(\) of agent 0 changes x",
    ),
    "the batch in place": (
        "def upper(self, x, y, batch):\n    batch.sort()\n    return super().upper(x, y, batch)",
        "arguments",
        r"upper\(\) of agent 0 changes the batch",
    ),
    "a graph that is kept": (
        "def lower(self, x, y, batch):\n    self.last = [super().lower(x, y, batch)]\n"
        "    return self.last[0] * 1",
        "graphs",
        r"keeps a tensor with its graph \(\.last\[0\]\) after lower\(\)",
    ),
    "no gradient at the very start": (
        "def upper(self, x, y, batch):\n"
        "    return super().upper(x, y, batch) + y.square().sum().sqrt()",
        "upper",
        r"the gradient of upper\(\) in y",
    ),
    "a start that is not flat": (
        "def start(self):\n    x, y = super().start()\n    return x, y.reshape(3, 1)",
        "start",
        r"expected shape \(3,\), .*; return flat tensors, as by v\.reshape\(-1\)\.",
    ),
    "data in float64 for ever": (
        "def upper(self, x, y, batch):\n"
        "    return super().upper(x, y, batch) * self.rows.double().mean()",
        "to",
        "expected a finite number in torch.float32",
    ),
}


@pytest.mark.parametrize(("broken", "what", "words"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_found_and_nothing_else(checked, broken, what, words):
    findings = checked(broken)
    blamed = failures(findings)
    assert blamed[0] == what
    with pytest.raises(UsageError, match=words):
        raise UsageError(findings[what].said)
    also = {"upper": {"everything", "single_level"}, "lower": {"everything"}, "to": {"dtype"}}
    assert {*blamed[1:]} <= also.get(what, set())


REMARKABLE = {
    "the same batch for ever": (
        "def sample(self, k, draw=0): return np.arange(6)",
        "sample",
        "exact",
    ),
    "no heed of draw": (
        "def sample(self, k, draw=0): return super().sample(k)",
        "sample",
        "'draw' changes nothing",
    ),
    "equal agents": (
        "def made(self):\n    self.rows = torch.ones_like(self.rows)\n    del self.private\n"
        "def lower(self, x, y, batch):\n    return x.exp().sum() * y.square().sum()",
        "agents",
        "do not depend on 'agent'",
    ),
    "no y below": (
        "def lower(self, x, y, batch): return x[self.private].square().sum()",
        "lower",
        "the lower level chooses nothing",
    ),
    "no x below": (
        "def lower(self, x, y, batch): return y.square().sum()",
        "lower",
        "does not depend on x",
    ),
    "no second derivatives": (
        "def lower(self, x, y, batch): return super().lower(x, Once.apply(y), batch)",
        "twice",
        "the backward of Once is marked once_differentiable; so leave out sparkle-*, d-soba, "
        "sldbo, ma-dsbo, mdbo, vrdbo, dsbo, gossip-dsbo, and take sun-dsbo-*",
    ),
    "second derivatives that raise": (
        "def lower(self, x, y, batch):\n    return Raising.apply(super().lower(x, y, batch))",
        "twice",
        "it cannot be differentiated twice (only once)",
    ),
    "second derivatives that are dropped": (
        "def lower(self, x, y, batch):\n"
        "    return super().lower(x, y, batch) + Dropping.apply(y).sum()",
        "twice",
        "they are off by",
    ),
    "nothing to report": (
        "def report(self, x, y): return {'a': float('nan')}",
        "report",
        "not finite",
    ),
}


@pytest.mark.parametrize(("broken", "what", "words"), REMARKABLE.values(), ids=REMARKABLE)
def test_what_may_be_meant_is_remarked_on(checked, broken, what, words):
    findings = checked(broken)
    assert failures(findings) == []
    assert findings[what].verdict is Verdict.REMARK
    assert words in findings[what].said


@pytest.mark.parametrize("way", ["Once.apply(y).sum()", "Raising.apply(y).sum()"])
def test_a_method_that_needs_second_derivatives_fails_where_there_are_none(checked, way):
    broken = f"def lower(self, x, y, batch): return super().lower(x, y, batch) + {way}"
    for name, failed in (("d-soba", ["twice"]), ("d-soba-fo", []), ("sun-dsbo-ed", [])):
        found = checked(broken, sets=[f'algorithm.name="{name}"'])
        assert failures(found) == failed
    findings = checked(
        "def lower(self, x, y, batch): return (Dropping.apply(y) * x[self.private].exp()[0]).sum()",
        sets=['algorithm.name="dsbo"'],
    )
    assert failures(findings) == ["twice"]
    assert findings["twice"].said.startswith("dsbo needs second derivatives of lower(), but they ")


STATIC = """@staticmethod
def upper(x, y, batch): return (y - 1).square().sum()
@classmethod
def lower(cls, x, y, batch): return (y - x.sum()).square().sum()
@staticmethod
def everything(): return [np.arange(6)]
@staticmethod
def report(x, y): return {'a': 1.0}
single_level = staticmethod(lambda x, y, batch: y.square().sum())
def made(self): del self.private"""


def test_what_is_odd_about_the_data_is_a_remark_and_nothing_else(checked):
    """Also where the data are divided again, to see whether that is the same."""
    noting = """@staticmethod
def shards(*, agents, seed, noise):
    import warnings
    from sundsbo_mpi.errors import DataNote
    warnings.warn(DataNote("a file is left out"), stacklevel=2)
    return Good.shards(agents=agents, seed=seed, noise=noise)"""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DataNote)
        findings = checked(noting)
    assert failures(findings) == []
    assert findings["shards"].said == "a file is left out"


def test_members_may_do_without_an_object(checked):
    findings = checked(STATIC)
    assert failures(findings) == []
    assert findings["options"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("@staticmethod\ndef upper(self, x, y, batch): return 0", r"expected upper\(x, y, batch\)"),
        ("@classmethod\ndef upper(cls, x, y): return 0", r"expected upper\(cls, x, y, batch\)"),
        ("def upper(x, y, batch): return 0", r"expected upper\(self, x, y, batch\)"),
    ],
)
def test_arguments_of_all_kinds_of_members_are_counted(checked, broken, words):
    said = checked(broken)["options"]
    assert said.verdict is Verdict.FAIL
    with pytest.raises(UsageError, match=words):
        raise UsageError(said.said)


FLOAT64 = """def made(self): self.scale = torch.ones(3).double() @ torch.ones(3)
def to(self, device, dtype): self.rows = self.rows.double()"""


def test_a_task_is_tried_in_the_dtype_of_its_run(checked):
    assert failures(checked(FLOAT64)) == ["to", "dtype"]
    findings = checked(FLOAT64, sets=['run.dtype="float64"'])
    assert failures(findings) == []
    assert "float64" in findings["dtype"].said
    own = 'defaults = {"run": {"dtype": "float64"}}\n'
    assert failures(checked(own + FLOAT64)) == []


def test_a_start_in_torchs_default_dtype_is_one_in_that_of_the_run(checked):
    start = "def start(self): return torch.zeros(4), torch.zeros(3)"
    assert failures(checked(start)) == []


def test_what_depends_on_what_failed_is_not_checked(checked):
    findings = checked("def start(self): return 0")
    assert failures(findings) == ["start"]
    for what in ("sample", "upper", "lower", "report"):
        assert findings[what].said == "not checked, since start failed"
    assert findings["saddle"].said == "not checked, since start failed"


def test_a_single_agent_can_be_checked(checked):
    assert failures(checked(agents=1)) == []


def run(*arguments):
    return CliRunner().invoke(command, ["check", *arguments], standalone_mode=False)


def test_the_command_shows_a_table_and_the_users_own_traceback(checked, tmp_path):
    path = tmp_path / "own.py"
    path.write_text(GOOD.format(broken="def upper(self, x, y, batch): return self.gone"))
    done = run(f"{path}:Broken", "--agents", "2", "--set", "task.noise=0.3")
    assert done.return_value == 2
    lines = done.output.splitlines()
    assert lines[0] == f"{path}:Broken, 2 agents"
    assert any(line.split()[:3] == ["options", "pass", "noise=0.3"] for line in lines)
    traced = done.output[done.output.index("upper:\n") :]
    assert f'File "{path}"' in traced
    assert "in upper" in traced
    assert "taskcheck" not in traced
    assert lines[-3] == "2 failed, 10 passed"
    # Said again below the traceback: single_level() calls upper().
    assert [line.partition(": ")[0] for line in lines[-2:]] == ["upper", "single_level"]


def test_the_command_ends_well_with_a_good_task():
    done = run("toy", "--agents", "3")
    assert done.return_value == 0
    assert "failed" not in done.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing.py:Task"], "does not exist"),
        (["quadratic", "--set", "task.nois=1"], "did you mean 'task.noise'"),
        (["tojy"], "did you mean 'toy'"),
    ],
)
def test_what_cannot_be_found_is_said_in_the_table(arguments, words):
    done = run(*arguments)
    assert done.return_value == 2
    assert words in done.output
    said = " ".join(done.output.split())
    assert said.count("not checked, since") == 1, "one line, however many checks"
    assert "not checked, since options failed: shards, constructor," in said


def test_numbers_of_agents_that_cannot_be_are_refused():
    with pytest.raises(UsageError, match="--agents is 0: expected an integer"):
        check_task("toy", 0)


def test_an_unknown_subcommand_is_refused():
    done = CliRunner().invoke(command, ["chek"], standalone_mode=False)
    assert "did you mean 'check'" in str(done.exception)
