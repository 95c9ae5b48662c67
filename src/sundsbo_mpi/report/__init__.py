"""One run as a page: what ran, on which network and data, what came of it, and at what cost."""
