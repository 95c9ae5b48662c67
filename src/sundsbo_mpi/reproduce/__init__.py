"""The paper's tables and figures: what they say, the runs that make them again, the comparison."""
