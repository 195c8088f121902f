"""Measurements that are run by hand: `python -m tests.benchmarks.NAME`. Never part of the tests."""
