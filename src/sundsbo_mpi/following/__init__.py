"""Following a run while it goes on: what its file says, how fast it is, and a view of it."""
