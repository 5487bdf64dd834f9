# Everything a newcomer, a developer or CI runs. `make` alone lists it.
# Needs python3 (3.11 or newer) with venv and pip; everything else is put into .venv.

SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv/bin
# What reaches a database is tested on PostgreSQL too. What reaches it through these packages only, such as
# the transport and the methods, is tested on it by e2e.
SQL := $(wildcard tests/serving/test_*.py) $(addprefix tests/,audit feed tenants vault calls tasks \
  identity catalogue rounds serving/execution serving/tasks serving/process serving/subscriptions \
  console/records/test_saved_filters.py console/rights/test_races.py)
PURE := mcphost/protocol/*,mcphost/sealing/*,mcphost/runtime/*
# Two workers suit two cores; TESTS narrows a run: make test TESTS=tests/protocol
WORKERS ?= 2
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help up test postgresql coverage cost pure mutants lint conformance e2e services browser bench screenshots editor fonts clean lock runtime dev

help: ## list these commands
	@echo "mcphost: a hosted, multi-tenant MCP server platform"
	@echo
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

up: ## set up what is missing, then serve on http://127.0.0.1:8000 (PORT, HOST, MCPHOST_HOME, DATABASE_URL, REDIS_URL)
	@command -v $(PYTHON) >/dev/null || { echo "mcphost: there is no $(PYTHON): install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m bootstrap runtime --serve
	@exec $(VENV)/python manage.py up

test: dev ## unit and interaction tests (TESTS=tests/<package> for some of them)
	env -u TEST_DATABASE_URL $(VENV)/python -m pytest $(TESTS) -n $(WORKERS)
	@if [ -n "$$TEST_DATABASE_URL" ]; then $(MAKE) --no-print-directory postgresql; \
	elif [ -n "$$CI" ]; then echo "mcphost: in CI, TEST_DATABASE_URL has to name a PostgreSQL" >&2; exit 1; \
	else echo; echo "NOT TESTED ON POSTGRESQL: set TEST_DATABASE_URL to one whose role may create databases"; fi

# Property tests have all their examples on SQLite already (EXAMPLES).
postgresql: dev ## the packages with SQL, and what stands on them, on the PostgreSQL of TEST_DATABASE_URL
	EXAMPLES=$${EXAMPLES:-25} $(VENV)/python -m pytest $(SQL) -n $(WORKERS) --only-database

coverage: dev ## the same tests with their coverage, 95 % or more, and 100 % of the pure packages; takes nearly twice as long
	@rm -f .coverage .coverage.*
	env -u TEST_DATABASE_URL $(VENV)/python -m pytest tests -n $(WORKERS) --cov --cov-report=
	$(VENV)/coverage report --fail-under=95
	$(VENV)/coverage report --fail-under=100 --include='$(PURE)'

# On a machine that does nothing else: the tests that every run has count instead (tests/work_counts.py).
cost: dev ## compare CPU and memory of what cannot be counted, with a table; by hand or each night
	env -u TEST_DATABASE_URL $(VENV)/python -m pytest tests -m cost

pure: dev ## coverage of the pure packages by their own tests, 100 %
	@rm -f .coverage .coverage.*
	env -u TEST_DATABASE_URL $(VENV)/python -m pytest tests/protocol tests/sealing tests/runtime tests/rounds -n $(WORKERS) --cov --cov-report=
	$(VENV)/coverage report --fail-under=100 --include='$(PURE)'

mutants: dev ## make small mistakes in the product, one at a time: do its tests notice each? Less than an hour (MUTANTS="calls tenants" for some)
	$(VENV)/python -m tests.mutants -n $(WORKERS) $(MUTANTS)

lint: dev ## format, lint, types, layers and the shape of the code
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python -m pytest -q tests/test_shape.py tests/test_names.py

conformance: dev ## the official MCP conformance suite, its scenarios for authorization servers too, against one server and against two nodes
	$(VENV)/python -m tests.conformance.run

e2e: services browser ## real processes, real clients, a real browser; attacks on a running server

services: dev ## the part of e2e without the browser
	MAX_STARTS=$${MAX_STARTS:-75} $(VENV)/python -m pytest tests/e2e tests/attacks --ignore=tests/e2e/browser -n $(WORKERS) --dist loadgroup

browser: dev ## the part of e2e in the browser
	$(VENV)/python -m pytest tests/e2e/browser

bench: dev ## throughput and listeners, beside other servers; writes docs/benchmarks.md (SMOKE=1: a second each, without the peers that have environments of their own)
	$(VENV)/python -m bench $(SCENARIOS) $(if $(SMOKE),--smoke --peers mcphost sdk bare)

screenshots: dev ## take the pictures of README and docs/tour.md again (needs chromium; PICTURES="calls keys" for some; PICTURES=pages for all pages, with cwebp, too)
	$(VENV)/python -m tests.screenshots $(PICTURES)

editor: dev ## build static/editor again from editor/ (the script editor of the console)
	$(VENV)/python -m editor

fonts: dev ## make static/fonts again from fonts/ (the characters and icons that the console uses)
	$(VENV)/python -m fonts

clean: ## remove .venv and everything that was built; never the data in var/
	rm -rf .venv build htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: dev ## resolve requirements*.in again into the hashed locks
	$(VENV)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements.in -o requirements.lock
	$(VENV)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements-dev.in -c requirements.lock -o requirements-dev.lock

runtime dev:
	@command -v $(PYTHON) >/dev/null || { echo "mcphost: there is no $(PYTHON): install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m bootstrap $@
