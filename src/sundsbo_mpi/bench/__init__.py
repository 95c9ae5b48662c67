"""What exchanges cost on this cluster, measured, and from it what a run would cost elsewhere."""
