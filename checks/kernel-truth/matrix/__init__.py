"""Compares what replays say of other kernels and settings with what these did."""
