"""Widgets of the screens."""
