# Every target sets up what it needs: a virtual environment in .venv with pinned, hash-checked packages.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
SOURCES := src tests benchmarks recipes
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ropewalk

# Which tests failed is kept in the folder KEEP, if one is named; with AGAIN only those run.
KEPT = $(if $(KEEP),-o cache_dir=$(KEEP) $(if $(AGAIN),--last-failed --last-failed-no-failures none),-p no:cacheprovider)

# Byte code is kept, whatever the shell says: tests start a thousand processes.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run run-wiring run-sync test test-extras lint wheel bench docs pins clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: .venv/.ready ## create .venv with ropewalk and the tools in it, kernels compiled

# What `make run` needs and nothing more, so that a first answer takes less than a minute. Python compiles what is imported.
.venv/.run: requirements/run.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) install --no-compile --require-hashes -r requirements/run.txt
	$(PIP) install --no-compile --no-deps --no-build-isolation --editable .
	$(BIN)/ropewalk warm plan
	@touch $@

.venv/.ready: .venv/.run requirements/dev.txt
	$(PIP) install --no-compile --require-hashes -r requirements/dev.txt
	$(BIN)/ropewalk warm
	@touch $@

run: .venv/.run ## the best strategy for Llama 2 13B on 64 H100s, on three networks: tables here, a page in out/plan.html
	$(BIN)/ropewalk plan llama2-13b --cluster dgx-h100:8 --batch 256 --seq 4096 --network rails,rail-only,leaf-spine:4to1 --plan out/plan.json --page out/plan.html

run-wiring: .venv/.run ## wiring and strategy for DLRM on 16 servers against every other network: a page in out/plan.html
	$(BIN)/ropewalk plan dlrm --servers 16 --degree 4 --gpus-per-server 4 --device a100 --dtype tf32 --bandwidth 100Gbps --compare all --plan out/plan.json --page out/plan.html

run-sync: .venv/.run ## the synchronisation study: a table here, a page in out/sync.html
	$(BIN)/ropewalk sync --page out/sync.html

test: setup ## all tests but those that need the heavy extras
	$(BIN)/python -m pytest -m "not extras" --numprocesses auto --dist loadfile $(KEPT)

test-extras: .venv/.extras ## the tests that need torch, ray, a browser, Slurm, PostgreSQL or FRR (as root it installs Debian's if absent)
	$(BIN)/python -m pytest -m extras $(if $(UNTIL),--until $(UNTIL)) $(KEPT)

DEBIAN := chromium slurm-wlm lua-socket lua5.1 curl shellcheck postgresql frr

.venv/.extras: .venv/.ready requirements/constraints.txt
	$(PIP) install --no-compile --constraint requirements/constraints.txt --editable '.[torch,ray,web,onnx,tables,tune,serve,postgres,frameworks]'
	@for name in $(DEBIAN); do dpkg-query --show $$name > /dev/null 2>&1 || missing="$$missing $$name"; done; \
	  test -z "$$missing" || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
	  && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing > /dev/null; } \
	  || echo "not installed:$$missing: the tests that need one of them are skipped"
	@touch $@

lint: setup ## ruff and mypy --strict
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy --cache-dir $(CACHE)/mypy

wheel: .venv/.ready ## a wheel in dist/ that brings its kernels compiled; minutes
	rm -rf build/kernels
	$(BIN)/ropewalk warm --into build/kernels
	ROPEWALK_KERNELS=build/kernels $(BIN)/python -m pip wheel --disable-pip-version-check --quiet --no-deps --no-build-isolation --wheel-dir dist .

bench: setup ## speed against peers and growth; minutes
	$(BIN)/python benchmarks/run_all.py

docs: .venv/.docs ## the documentation as a site in site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site/index.html; with search: $(BIN)/python -m http.server --directory site"

.venv/.docs: .venv/.ready requirements/constraints.txt
	$(PIP) install --no-compile --constraint requirements/constraints.txt --editable '.[docs]'
	@touch $@

pins: ## resolve the pinned requirements anew
	sh requirements/pin.sh

clean: ## remove what make made
	rm -rf .venv out site build dist
