"""A module on flat variables against autograd on the module itself."""

import pytest
import torch
from torch import nn

from sundsbo_mpi import SplitModule
from sundsbo_mpi.errors import UsageError


class Tied(nn.Module):
    """The same parameter under two names, and one that is frozen."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.head = nn.Linear(3, 3)
        self.head.weight = self.body.weight
        self.frozen = nn.Parameter(torch.rand(3), requires_grad=False)

    def forward(self, inputs, scale=1.0):
        return scale * self.head(self.body(inputs).tanh()) + self.frozen


def network():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Conv1d(2, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten())
    return nn.Sequential(body, nn.Linear(12, 3)).double()


def inputs():
    return torch.randn(7, 2, 5, generator=torch.Generator().manual_seed(1)).double()


def moved(split):
    rng = torch.Generator().manual_seed(2)
    return [v + torch.randn(len(v), generator=rng, dtype=v.dtype) for v in split.start()]


@pytest.mark.parametrize("x", ["0.*", ["0.0.weight", "*.bias"], [], "*"])
def test_value_and_gradients_are_those_of_the_module(x):
    module = network()
    split = SplitModule(module, x)
    x, y = (v.requires_grad_() for v in moved(split))
    value = split(x, y, inputs()).square().sum()
    found = torch.autograd.grad(value, (x, y), allow_unused=True, materialize_grads=True)

    own = split.filled(x.detach(), y.detach())
    expected = own(inputs()).square().sum()
    expected.backward()
    gradients = {name: p.grad.flatten() for name, p in own.named_parameters()}
    assert value == expected
    for v, mine in zip("xy", found, strict=True):
        theirs = [gradients.pop(name) for name in split.names[v]]
        assert torch.equal(mine, torch.cat([torch.empty(0).double(), *theirs]))
    assert not gradients  # every parameter is in one of them


def test_patterns_divide_the_parameters_in_the_modules_order():
    split = SplitModule(network(), x=("1.bias", "0.0.*"))
    assert split.names == {
        "x": ("0.0.weight", "0.0.bias", "1.bias"),
        "y": ("0.1.weight", "0.1.bias", "1.weight"),
    }
    assert split.sizes == {"x": 24 + 4 + 3, "y": 4 + 4 + 36}
    assert {v: len(s) for v, s in zip("xy", split.start(), strict=True)} == split.sizes


def test_the_start_is_the_modules_own_and_a_copy():
    module = network()
    split = SplitModule(module, "1.*")
    before = inputs()
    x, y = split.start()
    assert torch.equal(split(x, y, before), module(before))
    x.zero_(), y.zero_()
    assert not torch.equal(split(x, y, before), module(before))
    assert torch.equal(split(*split.start(), before), module(before))


def test_x_may_be_something_else_where_all_parameters_are_in_y():
    module = network()
    split = SplitModule(module)
    assert split.sizes["x"] == len(split.start()[0]) == 0
    assert torch.equal(split(None, split.start()[1], inputs()), module(inputs()))


def test_y_may_be_something_else_where_all_parameters_are_in_x():
    module = network()
    model = SplitModule(module, x="*")
    assert model.sizes["y"] == 0
    x, _ = model.start()
    assert torch.equal(model(x, torch.ones(3), inputs()), module(inputs()))


def test_frozen_parameters_are_constants_and_tied_ones_count_once():
    module = Tied()
    split = SplitModule(module, "body.*")
    assert split.names == {"x": ("body.weight", "body.bias"), "y": ("head.bias",)}
    x, y = moved(split)
    weight, bias = x[:9].view(3, 3), x[9:]
    rows = torch.rand(4, 3)
    hidden = (rows @ weight.T + bias).tanh()
    expected = 2.0 * (hidden @ weight.T + y) + module.frozen
    torch.testing.assert_close(split(x, y, rows, scale=2.0), expected)


def test_it_moves_to_another_dtype_with_all_that_is_constant():
    split = SplitModule(Tied())
    split.to(torch.device("cpu"), torch.float64)
    x, y = split.start()
    assert (x.dtype, y.dtype) == (torch.float64, torch.float64)
    assert split(x, y, torch.rand(2, 3).double()).dtype == torch.float64


def test_filled_leaves_the_module_alone():
    module = network()
    before = {name: p.clone() for name, p in module.named_parameters()}
    split = SplitModule(module, "0.*")
    x, y = moved(split)
    assert torch.equal(split.filled(x, y)(inputs()), split(x, y, inputs()))
    assert all(torch.equal(p, before[name]) for name, p in module.named_parameters())


def test_running_statistics_are_refused_unless_they_rest():
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    split = SplitModule(module)
    x, y = split.start()
    words = r"changes its buffer '1\.num_batches_tracked'.*call eval\(\)"
    with pytest.raises(UsageError, match=words):
        split(x, y, torch.rand(5, 3))
    module.eval()
    rows = torch.rand(5, 3)
    assert torch.equal(split(x, y, rows), module(rows))
    without = SplitModule(nn.BatchNorm1d(3, track_running_stats=False))
    assert without(*without.start(), rows).shape == (5, 3)


def test_a_buffer_that_is_replaced_is_noticed():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(1))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, rows):
            self.calls = self.calls + 1
            return rows * self.weight

    split = SplitModule(Counting())
    with pytest.raises(UsageError, match="changes its buffer 'calls'"):
        split(*split.start(), torch.ones(2))


@pytest.mark.parametrize("pattern", ["0.weigth", "body.*"])
def test_a_pattern_that_matches_nothing_is_refused(pattern):
    with pytest.raises(UsageError, match="unknown parameter of the module"):
        SplitModule(nn.Sequential(nn.Linear(2, 2)), ["0.bias", pattern])
