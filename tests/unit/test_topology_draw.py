"""Pictures of networks: they hold what they should, for one agent as for many."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from sundsbo_mpi.errors import UsageError
from sundsbo_mpi.pictures.topology import draw_graph, draw_weights
from sundsbo_mpi.topology import BUILDERS


@pytest.mark.parametrize("n", [1, 2, 10, 250, 600])
def test_a_picture_is_written(tmp_path, n):
    path = tmp_path / "ring.png"
    draw_weights(BUILDERS["ring"](n), str(path))
    picture = imread(path)
    assert picture.shape[0] > 500
    assert picture[..., :3].std() > 0.01


def test_edges_are_as_wide_as_their_weights_and_agents_are_numbered():
    weights = BUILDERS["exponential"](10)
    axes = Figure().add_subplot()
    draw_graph(axes, weights.mean, weights.edges(), symmetric=True)
    widths = np.unique(np.round(axes.collections[0].get_linewidths(), 9))
    assert len(widths) == 2
    assert widths[1] == pytest.approx(2 * widths[0])
    assert sorted(int(text.get_text()) for text in axes.texts) == list(range(10))
    told = {text.get_text(): line.get_linewidth() for text, line in zip(
        axes.get_legend().get_texts(), axes.get_legend().get_lines(), strict=True
    )}  # fmt: skip
    assert told == {"0.125": pytest.approx(widths[0]), "0.25": pytest.approx(widths[1])}


def test_the_title_says_rho(tmp_path):
    path = tmp_path / "ring.svg"
    draw_weights(BUILDERS["ring"](10), str(path))
    assert "ρ = 0.904508" in path.read_text()


def test_odd_names_are_refused(tmp_path):
    weights = BUILDERS["ring"](4)
    with pytest.raises(UsageError, match=r"its suffix is '\.pnk', expected one of \.png"):
        draw_weights(weights, str(tmp_path / "ring.pnk"))
    with pytest.raises(UsageError, match="its suffix is ''"):
        draw_weights(weights, str(tmp_path / "ring"))
    with pytest.raises(UsageError, match="No such file or directory; choose another name"):
        draw_weights(weights, str(tmp_path / "gone" / "ring.png"))
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        draw_weights(weights, str(tmp_path / "folder.png"))
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


def test_without_matplotlib_the_user_is_told_how_to_get_it(tmp_path):
    script = f"""
import sys
sys.modules["matplotlib"] = None
from sundsbo_mpi.topology import BUILDERS
from sundsbo_mpi.pictures.topology import draw_weights
draw_weights(BUILDERS["ring"](4), {str(tmp_path / "ring.png")!r})
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'sundsbo-mpi[plot]'" in ended.stderr.splitlines()[-1]
