# Everything runs from .venv, which each target makes or renews when it needs to; `make` lists the
# targets. ARGS is handed on: `make test ARGS=tests/unit`, `make demo ARGS=--json`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Schemathesis pins an older jsonschema-rs than ours, and so has an environment of its own.
SCHEMATHESIS := $(VENV)/schemathesis
FUZZER := $(SCHEMATHESIS)/.ready
PACKAGES = sdk/src $(shell $(BIN)/python -c "import tomllib; \
	wheel = tomllib.load(open('pyproject.toml', 'rb'))['tool']['hatch']['build']['targets']['wheel']; \
	print(*wheel['packages'])")
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links --no-emit-package tallystick

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Pyright's own version is pinned; without this it asks the network for a newer one.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Else each of the many processes that the tests start compiles every module anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo serve test check audit oracle simulate soak format constraints clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) $(FUZZER) ## make or renew the environment in .venv

demo: $(READY) ## show what Tallystick does, on an embedded PostgreSQL
	@$(BIN)/registry demo $(ARGS)

serve: $(READY) ## run the service on this machine
	@$(BIN)/registry serve $(ARGS)

# In the order of the folders, which has the long files first: otherwise they come last, one by one.
test: $(READY) $(FUZZER) ## run all tests
	@$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

oracle: $(READY) ## refute comparisons: make oracle PAIRS=200000 SEED=1
	@ORACLE_PAIRS=$(PAIRS) ORACLE_SEED=$(SEED) $(BIN)/pytest -n 2 --dist load tests/property/test_compatibility_oracle.py

simulate: $(READY) ## schedules in simulated time: make simulate SCHEDULES=10000 SEED=1
	@$(BIN)/python -m tests.simulation --schedules $(or $(SCHEDULES),10000) --seed $(or $(SEED),1)

soak: $(READY) ## kill, pause and restart real processes: make soak DURATION=600 SEED=1
	@$(BIN)/python -m tests.crash --duration $(or $(DURATION),600) --seed $(or $(SEED),1)

check: $(READY) ## lint, format, types, layers, insecure code, known vulnerabilities; changes nothing
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/pyright
	@# Its cache keeps, for an unchanged file, an import whose target has since appeared or gone.
	@$(BIN)/lint-imports --no-logo --no-cache
	@$(BIN)/bandit --quiet --configfile pyproject.toml --recursive $(PACKAGES)
	@$(MAKE) --no-print-directory audit UNREACHABLE=0

# It needs PyPI's database, which a mirror may not have: that fails here, and in `check` is told
# alone. pip-audit by itself would call what it cannot ask about free of known faults.
UNREACHABLE ?= 2
audit: $(READY) ## ask PyPI for known vulnerabilities of what is pinned
	@told=$$($(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off \
		--requirement constraints.txt 2>&1) && status=0 || status=$$?; \
	echo "$$told"; \
	case "$$told" in *"could not be audited"* | *"Could not connect"*) \
		echo "PyPI's vulnerability database cannot be reached from here: this is no audit."; \
		status=$(UNREACHABLE) ;; \
	esac; \
	exit $$status

format: $(READY) ## put every file in its format and mend what ruff can
	@$(BIN)/ruff check --fix-only
	@$(BIN)/ruff format

constraints: $(READY) ## choose the newest versions allowed, and pin them with their hashes
	@$(COMPILE) pyproject.toml --upgrade --group dev --output-file constraints.txt
	@$(COMPILE) pyproject.toml --constraint constraints.txt --output-file deploy/requirements.txt
	@$(COMPILE) tests/schemathesis/requirements.in --upgrade \
		--output-file tests/schemathesis/constraints.txt

clean: ## remove the environment and all that the tools left behind
	@rm -rf $(VENV) dist .hypothesis .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The mark is written last, so that an interrupted installation is done again. All output goes to the
# error stream: standard output belongs to the target that asked for the environment.
$(READY): constraints.txt pyproject.toml sdk/pyproject.toml
	@{ \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Tallystick needs Python 3.11 or newer, and '$(PYTHON)' is not: make PYTHON=python3.11"; \
		exit 1; }; \
	echo "Making the environment in $(VENV) ..."; \
	set -e; \
	$(PYTHON) -m venv $(VENV); \
	$(BIN)/python -m pip install --quiet --require-hashes --requirement constraints.txt; \
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable ./sdk --editable .; \
	touch $@; \
	} >&2

$(FUZZER): tests/schemathesis/constraints.txt | $(READY)
	@{ \
	echo "Making the environment in $(SCHEMATHESIS) ..."; \
	set -e; \
	$(PYTHON) -m venv $(SCHEMATHESIS); \
	$(SCHEMATHESIS)/bin/python -m pip install --quiet --require-hashes \
		--requirement tests/schemathesis/constraints.txt; \
	touch $@; \
	} >&2
