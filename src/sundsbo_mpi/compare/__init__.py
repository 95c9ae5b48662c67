"""Runs, or benches, from one or several clusters beside one another."""
