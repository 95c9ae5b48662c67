"""Few-shot meta-learning: the task, its backbone, heads, minibatches and shards."""
