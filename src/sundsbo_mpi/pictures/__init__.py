"""Pictures of runs: panels, curves of one or several runs, bars, and what they are called."""
