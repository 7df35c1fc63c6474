# Targets only delegate, and all can be run again. `make` alone lists them with the text behind `##`.
BIN := .venv/bin
# Where Python is told to keep no compiled files, each worker would compile all tests anew.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
# Containers wait a lot, so there are more workers than cores.
TESTS := $(PYTEST) -n 4
.DEFAULT_GOAL := help
.PHONY: help run test quick attack other-pythons every-case every-agent check lint types fmt bench chaos smoke-llm docs pictures setup bundles docker compose browser venv lock clean

help:       ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

run: setup  ## set up and run the quickstart sweep; more arguments with ARGS="fresh=true"
	$(BIN)/python -m runner experiment=quickstart $(ARGS)

test: bundles compose browser ## set up and run all tests, with full branch coverage of metrics/; some of them with ARGS="-k gateway"
	$(TESTS) $(or $(ARGS),--ignore=tests/metrics)
	$(if $(ARGS),,$(PYTEST) -n auto tests/metrics --cov)

quick: venv ## run the nine of ten tests that need no Docker Engine, browser or Ray; they take a quarter of the time
	$(TESTS) --ignore=tests/metrics -m "not docker and not bundle and not browser and not serial" $(ARGS)

attack: bundles ## run the attacks of tests/security, by agents, candidates, datasets and providers
	$(TESTS) tests/security $(ARGS)

other-pythons: ## run some tests, none with containers or a browser, on /usr/bin/python3, 3.12 and 3.13
	@ARGS="$(ARGS)" .ci/other-pythons

every-case: bundles ## run all shipped tasks, cases and recordings, of which `make test` runs some; also ASSAY_CASES=FILE
	ASSAY_EVERY_CASE=1 $(BIN)/python -m pytest -n 2 -rs tests/benchmarks/cli_tool_bench/test_shipped_tools.py \
	  tests/benchmarks/cli_tool_bench/construction/test_seven_tools.py \
	  tests/benchmarks/cli_tool_bench/construction/test_make_checkouts.py tests/benchmarks/harbor/test_quickstart.py \
	  tests/benchmarks/project_setup/test_shipped_projects.py \
	  tests/benchmarks/cli_tool_bench/test_golden_outputs.py tests/security/test_answers_in_reach.py \
	  tests/security/test_suite_forgeries.py $(ARGS)

check: lint types test ## run everything that a change must pass

every-agent: bundles ## install all agents and run the real program of each, of which `make test` runs nine
	$(BIN)/python -m runner job=setup experiment=more_agents
	ASSAY_EVERY_AGENT=1 $(BIN)/python -m pytest -n 2 tests/agents tests/sandbox/docker/test_bundles.py $(ARGS)

lint: venv  ## check style and find common mistakes
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: venv ## check types strictly
	$(BIN)/mypy

fmt: venv   ## format the code and apply automatic fixes
	$(BIN)/ruff check --fix --exit-zero
	$(BIN)/ruff format

bench: setup ## measure speed, as ratios within one run
	$(BIN)/python -m tests.bench.__main__

chaos: venv  ## kill and freeze crews, nodes and drivers of sweeps on Ray at random; fewer with ARGS="--faults 20"
	$(BIN)/python -m tests.chaos $(ARGS)

smoke-llm: setup ## run a tiny real language model on llama.cpp's server, from its address to a leaderboard
	$(BIN)/python -m tests.smoke.llm

docs: venv   ## build the documentation site in .cache/site; fails on a broken link
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

pictures: run browser ## make the pictures in docs/ from the quickstart sweep and from a funnel of candidates
	$(BIN)/python docs/make_pictures.py outputs/quickstart
	$(BIN)/python docs/make_funnel.py

setup: venv docker ## install the virtual environment, Docker Engine, base image and agent bundles
	$(BIN)/python -m runner job=setup experiment=quickstart model=scripted_careful

bundles: venv docker ## as setup, with the bundles of all agents
	$(BIN)/python -m runner job=setup experiment=every_agent

docker: venv ## check that a Docker Engine answers; as root on Debian, install and start it
	$(BIN)/python -m runner.sandbox.docker.engine

compose: venv ## check for Docker Compose, which only tasks of several containers need; on Linux, install it in .venv
	$(BIN)/python -m runner.sandbox.docker.compose

browser: venv ## check for the Chromium that tests of pages need; as root on Debian, install it
	$(BIN)/python -m tests.support.browser

venv: $(BIN)/.installed ## make the virtual environment, exactly as in requirements.lock
$(BIN)/.installed: requirements.lock
	@if [ -e $@ ]; then echo "requirements.lock has changed: $(BIN) is made again, without packages that were added by hand"; fi
	.ci/venv .venv

lock: venv  ## resolve pyproject.toml again into requirements.lock (with hashes, without addresses)
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --group dev --custom-compile-command "make lock" pyproject.toml --output-file requirements.lock

clean: venv ## remove our containers and snapshots; bundles and images too with ARGS="job.all=true"
	$(BIN)/python -m runner job=clean $(ARGS)
