# Everything a newcomer, a developer or CI runs. `make` alone lists it.
# Needs python3 (3.11 or newer) with venv and pip; everything else is put into .venv.

SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv/bin
# What reaches a database is tested on PostgreSQL too.
SQL := $(addprefix tests/,audit feed tenants vault calls tasks identity catalogue serving transport rounds)
PURE := mcphost/protocol/*,mcphost/sealing/*,mcphost/runtime/*
# Two workers suit two cores; TESTS narrows a run: make test TESTS=tests/protocol
WORKERS ?= 2
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help up test postgresql lint conformance e2e bench editor clean lock runtime dev

help: ## list these commands
	@echo "mcphost: a hosted, multi-tenant MCP server platform"
	@echo
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

up: ## set up what is missing, then serve on http://127.0.0.1:8000 (PORT, HOST, MCPHOST_HOME, DATABASE_URL, REDIS_URL)
	@command -v $(PYTHON) >/dev/null || { echo "mcphost: there is no $(PYTHON): install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m bootstrap runtime --serve
	@exec $(VENV)/python manage.py up

test: dev ## unit and interaction tests with coverage (TESTS=tests/<room> for some of them)
	@rm -f .coverage .coverage.*
	env -u TEST_DATABASE_URL $(VENV)/python -m pytest $(TESTS) -n $(WORKERS) --cov --cov-report=
	@if [ "$(TESTS)" = tests ]; then \
	  echo "Coverage of mcphost/ (95 % or more)" && $(VENV)/coverage report --fail-under=95 && \
	  echo "Coverage of the pure rooms (100 %)" && $(VENV)/coverage report --fail-under=100 --include='$(PURE)'; \
	fi
	@if [ -n "$$TEST_DATABASE_URL" ]; then $(MAKE) --no-print-directory postgresql; \
	elif [ -n "$$CI" ]; then echo "mcphost: in CI, TEST_DATABASE_URL has to name a PostgreSQL" >&2; exit 1; \
	else echo; echo "NOT TESTED ON POSTGRESQL: set TEST_DATABASE_URL to one whose role may create databases"; fi

postgresql: dev ## the rooms with SQL, and what stands on them, on the PostgreSQL of TEST_DATABASE_URL
	$(VENV)/python -m pytest $(SQL) -n $(WORKERS)

lint: dev ## format, lint, types, layers and the shape of the code
	$(VENV)/ruff format --check .
	$(VENV)/ruff check .
	$(VENV)/mypy
	$(VENV)/lint-imports
	$(VENV)/python -m pytest -q tests/test_shape.py

conformance: dev ## the official MCP conformance suite against one server and against two nodes
	$(VENV)/python -m tests.conformance.run

e2e: dev ## real processes, real clients, a real browser; attacks on a running server
	$(VENV)/python -m pytest tests/e2e tests/attacks --ignore=tests/e2e/browser
	@if [ -d tests/e2e/browser ]; then $(VENV)/python -m pytest tests/e2e/browser; fi

bench: dev ## throughput and listeners, beside other servers; writes docs/benchmarks.md (SMOKE=1: a second each)
	$(VENV)/python -m bench $(if $(SMOKE),--smoke)

editor: dev ## build static/editor again from editor/ (the script editor of the admin)
	$(VENV)/python -m editor

clean: ## remove .venv and everything that was built; never the data in var/
	rm -rf .venv build htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

lock: dev ## resolve requirements*.in again into the hashed locks
	$(VENV)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements.in -o requirements.lock
	$(VENV)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header requirements-dev.in -c requirements.lock -o requirements-dev.lock

runtime dev:
	@command -v $(PYTHON) >/dev/null || { echo "mcphost: there is no $(PYTHON): install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv)" >&2; exit 1; }
	@$(PYTHON) -m bootstrap $@
