#!/bin/sh
# Resolve all requirements to exact versions with hashes; the files name no index. PyTorch is pinned by itself, without
# the CUDA libraries that it needs on some machines.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python -m pip install --quiet uv
.venv/bin/uv pip compile pyproject.toml --extra dev --universal --generate-hashes --no-header --no-emit-index-url \
  --no-annotate --quiet --output-file requirements/dev.txt requirements/build.in
# What `make run` installs: the same versions, without the tools.
.venv/bin/uv pip compile pyproject.toml --constraint requirements/dev.txt --universal --generate-hashes --no-header \
  --no-emit-index-url --no-annotate --quiet --output-file requirements/run.txt requirements/build.in
.venv/bin/uv pip compile pyproject.toml --extra dev --extra ray --extra web --extra onnx --extra tables --extra tune --extra serve --extra postgres --extra docs --extra frameworks --universal --no-header \
  --override requirements/without-torch.in --no-emit-index-url --no-annotate --quiet --output-file requirements/constraints.txt requirements/build.in
echo 'torch==2.13.0' >> requirements/constraints.txt
