"""ropewalk: plan, simulate and run the network side of distributed deep-learning training."""

__version__ = "0.1.0"
