"""Where pytest looks for no examples: helpers of tests and, without PyTorch, modules that measure or train with it."""

from importlib.util import find_spec

collect_ignore_glob = ["tests/reference/*"]
if find_spec("torch") is None:
    collect_ignore_glob += ["src/ropewalk/device/measure/*", "src/ropewalk/export/pytorch/train.py"]
