"""Measurements as tools write them: nccl-tests, NCCL Inspector, PyTorch's profiler, tables of pairs."""
