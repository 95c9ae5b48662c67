"""Settings tried beside one another: on a grid or at random, coarse and then finer, and ranked."""
