"""How a run is set up: layers of settings, checked and complete."""
