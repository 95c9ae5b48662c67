"""What is measured at an evaluation."""
