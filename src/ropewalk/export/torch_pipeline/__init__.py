"""Timetables as the CSV files that PyTorch's `_PipelineScheduleRuntime` loads, written and read.

One row a rank, one cell an action, no header. `compute_only` names passes and leaves communication to PyTorch;
`compute_comms` spells out sends, receives, and where parameters are gathered and gradients reduced. One rank runs a
stage: stages with different numbers of replicas cannot be said in this format, nor two copies of a model.
"""

from ropewalk.export.torch_pipeline.lower import compute_comms as compute_comms
from ropewalk.export.torch_pipeline.read import read_compute_comms as read_compute_comms
from ropewalk.export.torch_pipeline.read import read_compute_only as read_compute_only
from ropewalk.export.torch_pipeline.write import compute_only as compute_only
