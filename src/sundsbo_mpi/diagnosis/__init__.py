"""What ails a run's numbers, and why."""
