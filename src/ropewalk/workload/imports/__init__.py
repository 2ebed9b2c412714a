"""Models from elsewhere: PyTorch modules, ONNX files, profiles of pipeline planners."""

from ropewalk.workload.imports.loader import module_from_path
from ropewalk.workload.imports.losses import cross_entropy, mean_square
from ropewalk.workload.imports.module import from_module
from ropewalk.workload.imports.onnx import from_onnx
from ropewalk.workload.imports.profile import from_profile

__all__ = ["cross_entropy", "from_module", "from_onnx", "from_profile", "mean_square", "module_from_path"]
