"""Slurm beside the controller: it places and isolates Slurm's jobs; what Slurm says of its jobs is the truth."""
