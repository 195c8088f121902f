"""Beside the worker: spawn, watch, sample, record, kill."""
