"""Topology and strategy together: which wiring, routes, seats and rings make a step shortest."""
