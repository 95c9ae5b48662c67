"""What several unit tests look at."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def drawn(monkeypatch):
    """Every figure that is saved."""
    figures = []
    save = Figure.savefig

    def remember(self, *args, **kwargs):
        figures.append(self)
        return save(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", remember)
    return figures
