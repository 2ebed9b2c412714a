"""Without PyTorch the modules that measure with it cannot be imported, so their examples are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/ropewalk/device/measure/*"]
