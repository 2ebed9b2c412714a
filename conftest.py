"""What pytest does not look into for examples: helpers of tests, and without PyTorch the modules that measure with it."""

from importlib.util import find_spec

collect_ignore_glob = ["tests/reference/*"]
if find_spec("torch") is None:
    collect_ignore_glob.append("src/ropewalk/device/measure/*")
