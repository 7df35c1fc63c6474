# Each target does what its line says and only delegates; `make` alone lists them. All of them can be repeated.
BIN := .venv/bin
.DEFAULT_GOAL := help
.PHONY: help run test attack other-pythons every-case check lint types fmt bench smoke-llm docs pictures setup bundles docker browser venv lock clean

help:       ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: setup  ## set up, then run the quickstart sweep; more with ARGS="fresh=true"
	$(BIN)/python -m runner experiment=quickstart $(ARGS)

test: bundles browser ## set up, then run every test, those of metrics/ to its last branch; some with ARGS="-k gateway"
	$(BIN)/python -m pytest -n 3 $(or $(ARGS),--ignore=tests/metrics)
	$(if $(ARGS),,$(BIN)/python -m pytest -n 3 tests/metrics --cov)

attack: bundles ## every attack that is kept (tests/security): what agents, candidates, datasets and providers may try
	$(BIN)/python -m pytest -n 3 tests/security $(ARGS)

other-pythons: ## tests without containers or a browser: all on /usr/bin/python3, some on 3.12 and 3.13
	@ARGS="$(ARGS)" .ci/other-pythons

every-case: setup ## every case of every tool that is shipped, where `make test` runs each tenth; more with ASSAY_CASES=FILE
	ASSAY_EVERY_CASE=1 $(BIN)/python -m pytest -n 2 -rs tests/benchmarks/cli_tool_bench/test_shipped_tools.py $(ARGS)

check: lint types test ## all that a change must pass

lint: venv  ## style and common mistakes
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: venv ## strict types
	$(BIN)/mypy

fmt: venv   ## format, and mend what can be mended mechanically
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

bench: setup ## speed, as ratios from one run
	$(BIN)/python -m tests.bench.__main__

smoke-llm: venv ## a real, tiny language model behind the gateway: that sampled tokens pass it, and nothing else
	$(BIN)/python -m tests.smoke.llm

docs: venv   ## the documentation as a site in .cache/site; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: run browser ## the pictures in docs/, from the quickstart sweep
	$(BIN)/python docs/make_pictures.py outputs/quickstart

setup: venv docker ## environment, Docker Engine, base image, agent bundles
	$(BIN)/python -m runner job=setup experiment=quickstart model=scripted_careful

bundles: venv docker ## as setup, with the bundle of every agent there is
	$(BIN)/python -m runner job=setup experiment=every_agent

docker: venv ## a Docker Engine that answers; as root on Debian it is installed and started
	$(BIN)/python -m runner.sandbox.docker.engine

browser: venv ## a headless Chromium for tests of pages; as root on Debian it is installed
	$(BIN)/python -m tests.support.browser

venv: $(BIN)/.installed ## the virtual environment, exactly as in requirements.lock
$(BIN)/.installed: requirements.lock
	@if [ -e $@ ]; then echo "requirements.lock has changed: $(BIN) is made anew, without what was added by hand"; fi
	.ci/venv .venv
	@touch $@

lock: venv  ## resolve pyproject.toml anew into requirements.lock (hashes, no addresses)
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --group dev --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

clean: venv ## remove our containers and snapshots; with ARGS="job.all=true" bundles and images too
	$(BIN)/python -m runner job=clean $(ARGS)
