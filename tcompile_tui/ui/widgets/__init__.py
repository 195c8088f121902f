"""Widgets of our own, for what Textual does not bring."""
