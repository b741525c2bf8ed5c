# Two commands are enough on a fresh machine: `make run` and `make test`.
# They need python3 (3.11 or newer), make and a package registry.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= auto

.PHONY: run test check lint format types contracts bench lock clean

$(VENV)/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("svc needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@

run: $(VENV)/installed
	$(BIN)/python manage.py run_demo $(if $(MODEL_SERVER),--model-server $(MODEL_SERVER) --model $(MODEL)) $(ARGS)

# The whole suite on SQLite, then the same suite on PostgreSQL where there is one.
test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)
	@if [ -n "$$SVC_TEST_DATABASE_URL" ]; then \
	  DATABASE_URL="$$SVC_TEST_DATABASE_URL" $(BIN)/python -m pytest -n $(JOBS) $(ARGS); \
	else \
	  echo "SKIPPED: the suite on PostgreSQL. Set SVC_TEST_DATABASE_URL to run it too."; \
	fi

check: lint types contracts
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py check

lint: $(VENV)/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(VENV)/installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/installed-dev
	$(BIN)/mypy .

contracts: $(VENV)/installed-dev
	$(BIN)/lint-imports

bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks

lock: $(VENV)/installed-dev
	$(BIN)/pip-compile -q --strip-extras --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links -o requirements.txt pyproject.toml
	$(BIN)/pip-compile -q --strip-extras --no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --extra dev -c requirements.txt -o requirements-dev.txt pyproject.toml

clean:
	rm -rf $(VENV) var .pytest_cache .mypy_cache .ruff_cache
