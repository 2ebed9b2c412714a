"""Measuring kernels on the machine at hand, with PyTorch: what `ropewalk profile` runs."""
