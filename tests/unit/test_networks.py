import numpy as np
import pytest
import torch
from torch import nn

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.tasks.networks import CNN, MLP

NETWORKS = {
    "perceptron": (
        MLP(4, 6, 5, 3),
        nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)),
        4,
    ),
    "linear": (MLP(4, 3), nn.Linear(4, 3), 4),
    "LeNet-5": (
        CNN((3, 32, 32)),
        nn.Sequential(
            nn.Unflatten(1, (3, 32, 32)),
            nn.Conv2d(3, 6, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(400, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
        ),
        3 * 32 * 32,
    ),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_flat_network_is_that_of_torch_s_layers(name):
    network, layers, features = NETWORKS[name]
    flat = nn.utils.parameters_to_vector(layers.parameters()).detach().requires_grad_()
    inputs = torch.randn(7, features, generator=torch.Generator().manual_seed(0))
    assert network.size == len(flat)
    mine, theirs = network(flat, inputs), layers(inputs)
    torch.testing.assert_close(mine, theirs)
    (slope,) = torch.autograd.grad(mine.square().sum(), flat)
    expected = torch.autograd.grad(theirs.square().sum(), list(layers.parameters()))
    torch.testing.assert_close(slope, nn.utils.parameters_to_vector(expected))


@pytest.mark.parametrize(
    ("network", "sizes", "inputs"),
    [
        (MLP(100, 50, 10), [101 * 50, 51 * 10], [100, 50]),
        (CNN((3, 32, 32)), [76 * 6, 151 * 16, 401 * 120, 121 * 84], [75, 150, 400, 120]),
    ],
)
def test_the_start_has_the_spread_of_torch_s_layers(network, sizes, inputs):
    start = network.initial(np.random.default_rng(0))
    assert start.dtype == torch.float64
    for piece, number in zip(start.split(sizes), inputs, strict=True):
        assert piece.abs().max() <= number**-0.5
        assert piece.std().item() == pytest.approx((3 * number) ** -0.5, rel=0.1)


def test_parameters_are_drawn_as_before_networks_had_convolutions():
    start = MLP(4, 6, 3).initial(np.random.default_rng(5))
    rng = np.random.default_rng(5)
    expected = [rng.uniform(-0.5, 0.5, 30), rng.uniform(-(6**-0.5), 6**-0.5, 21)]
    np.testing.assert_array_equal(start.numpy(), np.concatenate(expected))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 16, 17), (2, 40, 16)])
def test_the_convolutional_network_fits_other_images(shape):
    network = CNN(shape)
    start = network.initial(np.random.default_rng(0))
    images = torch.ones(2, int(np.prod(shape)), dtype=torch.float64)
    assert network(start, images).shape == (2, 84)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 15)])
def test_images_that_the_convolutions_would_use_up_are_refused(shape):
    with pytest.raises(UsageError, match=f"{shape[1]} x {shape[2]} pixels are too small"):
        CNN(shape)
