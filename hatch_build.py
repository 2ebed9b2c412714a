"""What a wheel brings besides sources: kernels compiled ahead, where ROPEWALK_KERNELS names the folder that has them.

`make wheel` fills the folder by `ropewalk warm --into` and builds. Such a wheel is for one Python and one platform, and
asks for the Numba that compiled its kernels; without the variable it is for all, and kernels are compiled at first use.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the folder, the tag and the requirement."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        folder = os.environ.get("ROPEWALK_KERNELS")
        if not folder or version == "editable":
            return
        target = json.loads(Path(folder, "target.json").read_text("utf-8"))
        build_data["force_include"][str(Path(folder).resolve())] = "ropewalk/_compiled"
        build_data["pure_python"], build_data["infer_tag"] = False, True
        build_data["dependencies"].append(f"numba=={target['numba']}")
