# Every target makes its own set-up on a fresh machine: a virtual environment in .venv with the versions of constraints.txt.
# Without make, see "Without make" in README.md. Written for GNU make 3.81 and newer.
#
#   make test PYTHON=python3.12        that Python for a new environment
#   make test VENV=$CONDA_PREFIX       an environment that is already there (conda, venv)
#   make test ARGS="-k fence -x"       more arguments for the command that the target runs
#   make test ARGS="--random-order-seed=7"    the tests in another order

VENV ?= .venv
PYTHON ?=
ARGS ?=

ifeq ($(OS),Windows_NT)
  BIN := $(VENV)/Scripts
  PY := $(firstword $(wildcard $(VENV)/python.exe) $(BIN)/python.exe)
else
  BIN := $(VENV)/bin
  PY := $(BIN)/python
endif
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3.13 python3.12 python3.11 python3 python)

# Written once the installation is complete; holds the folder that was installed, so that a moved or a second clone installs again.
STAMP := $(VENV)/.xinfer-lab-installed
ifneq ($(shell cat '$(STAMP)' 2>/dev/null),$(CURDIR))
  MOVED := moved
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: moved

moved:

$(STAMP): pyproject.toml constraints.txt $(MOVED)
	@set -e; \
	new_enough='import sys; sys.exit(sys.version_info < (3, 11))'; \
	if ! '$(PY)' -m pip --version >/dev/null 2>&1; then \
	  found=; \
	  for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c "$$new_enough" >/dev/null 2>&1; then found=$$candidate; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "No Python 3.11 or newer among: $(CANDIDATES). Install one, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; \
	  fi; \
	  echo "Making $(VENV) with $$("$$found" --version)."; \
	  if ! "$$found" -m venv '$(VENV)'; then \
	    echo "$$found cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; \
	  fi; \
	fi; \
	if ! '$(PY)' -c "$$new_enough"; then \
	  echo "$(VENV) holds $$('$(PY)' --version), but 3.11 or newer is needed: remove it or name another with VENV=." >&2; exit 1; \
	fi; \
	echo 'Installing the versions of constraints.txt into $(VENV) (the first time this takes minutes: torch is large).'; \
	'$(PY)' -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,dev]'
	@echo '$(CURDIR)' > '$(STAMP)'

# Below, a target is its name, what `make help` says of it, and its command.

.PHONY: demo
demo: $(STAMP) ## stream a small model and print the parity line
	'$(BIN)/xinfer-lab' demo $(ARGS)

.PHONY: test
test: $(STAMP) ## run the tests that take no more than minutes; slow and CUDA tests are counted, not run
	'$(PY)' -m pytest -n auto -m 'not slow and not cuda' $(ARGS)

.PHONY: test-all
test-all: $(STAMP) ## run every test but those for CUDA, with the whole bank
	'$(PY)' -m pytest -n auto -m 'not cuda' $(ARGS)

.PHONY: test-slow
test-slow: $(STAMP) ## run what make test leaves out, but for searches
	'$(PY)' -m pytest -n auto -m 'slow and not search and not cuda' $(ARGS)

.PHONY: test-search
test-search: $(STAMP) ## search for what nobody thought of, for hours: all that an answer can reach, ten thousand broken files
	'$(PY)' -m pytest -n auto -m 'search and not cuda' $(ARGS)

.PHONY: test-times
test-times: $(STAMP) ## run every test in one process, and write into docs/testing.md where the time goes
	'$(PY)' -m tools.test_times $(ARGS)

# What changes with the labs and their judges alone, and takes minutes.
.PHONY: grader
grader: $(STAMP) ## change each reference answer in every small way: checks must notice
	'$(PY)' -m pytest tests/grader -n auto $(ARGS)

# apt-get, which waits while another program holds the system's packages: on a machine that has just been started, one does.
define APT
n=0; until $(AS_ROOT) env DEBIAN_FRONTEND=noninteractive apt-get $(1); do \
  n=$$((n + 1)); \
  if [ $$n -ge 60 ] || ! $(AS_ROOT) apt-get check 2>&1 | grep -qi 'lock'; then exit 1; fi; \
  [ $$n -gt 1 ] || echo 'Another program is installing packages; waiting for it, at most ten minutes.' >&2; \
  sleep 10; \
done
endef

# Only where it costs nothing to ask: root, by itself or by sudo without a password, on a system with Debian's packages.
# Elsewhere it says what to do.
AS_ROOT = $$([ "$$(id -u)" = 0 ] || echo sudo -n)

.PHONY: sandbox
sandbox: ## install bubblewrap, under which students' code is marked
	@if command -v bwrap >/dev/null 2>&1; then \
	  echo 'bubblewrap is there'; \
	elif $(AS_ROOT) true 2>/dev/null && command -v apt-get >/dev/null 2>&1; then \
	  $(call APT,update -qq); $(call APT,install -y -qq bubblewrap); \
	else \
	  echo 'Install bubblewrap with the packages of your system (Debian, Ubuntu: sudo apt install bubblewrap); macOS and Windows have none.'; \
	fi

# As `sandbox`: a Chromium is taken where it is; else installed where that costs nothing to ask; else it is said what to do.
.PHONY: chromium
chromium: $(STAMP) ## install a Chromium for make browser, where that is easy
	@'$(PY)' -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser]'
	@if '$(PY)' -m tests.browser.chromium; then :; \
	elif $(AS_ROOT) true 2>/dev/null && command -v apt-get >/dev/null 2>&1; then \
	  $(call APT,update -qq); $(call APT,install -y -qq chromium); \
	fi

# pytest's status 5, no test ran, is no failure here: where there is no Chromium, all are left out and counted.
.PHONY: browser
browser: chromium ## work through the labs in a real Chromium; screenshots in artifacts/browser
	'$(PY)' -m pytest tests/browser $(ARGS) || [ $$? = 5 ]

.PHONY: lint
lint: $(STAMP) ## ruff, mypy, and the direction of imports
	'$(PY)' -m ruff check
	'$(PY)' -m ruff format --check
	'$(PY)' -m mypy
	'$(PY)' -c 'from importlinter.cli import lint_imports_command as main; main()' --no-logo

.PHONY: lab
lab: $(STAMP) ## open the labs in JupyterLab; it asks nothing of other hosts
	JUPYTER_CONFIG_PATH='$(CURDIR)/config/jupyter' '$(PY)' -m jupyterlab labs $(ARGS)

.PHONY: bench
bench: $(STAMP) ## measure this machine's GPU beside what others do (ARGS="32b --layers 32 --vram 12GiB")
	'$(BIN)/xinfer-lab' bench $(ARGS)

.PHONY: labs
labs: $(STAMP) ## write labs/ from solutions/
	'$(PY)' -m xinfer_lab.course.release $(ARGS)

.PHONY: pictures
pictures: $(STAMP) ## draw the pictures of README and Lab 1; then make labs
	'$(PY)' -m tools.pictures

.PHONY: bank
bank: $(STAMP) ## grade every banked answer 20 times and print the table; takes half an hour or more
	'$(PY)' tools/bank.py $(ARGS)

.PHONY: class
class: $(STAMP) ## mark a made-up class of 200, twice; takes ten minutes or more (ARGS="--students 50")
	'$(PY)' tools/class_of.py $(ARGS)

.PHONY: simulate-class
simulate-class: $(STAMP) ## mark a class of 2,000 in all labs from 40 recordings, and print what it costs
	'$(PY)' tools/simulated_class.py $(ARGS)

.PHONY: map
map: $(STAMP) ## write docs/map.md from the modules' docstrings
	'$(PY)' tools/code_map.py

.PHONY: clean
clean: ## remove caches and leftovers of builds; keeps .venv
	rm -rf .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis build dist

.PHONY: help
help: ## say what each target does
	@echo 'make TARGET, where TARGET is'
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1:\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F: '{printf "%-11s %s\n", $$1, $$2}'
