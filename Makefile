# make run        sets up .venv and does the main job: ResNet-18's convolutions, compiled, simulated, checked
# make test       sets up what the tests need and runs them on all cores
# make test-rtl   the RTL on every machine, in every memory, and how much of it was tested; ten minutes
# make coverage   functional coverage of the core, on three small machines; minutes
# make exact      the simulator against the RTL, to the cycle and to the bit; a quarter of an hour
# make large-report   a report of 5,000 points in Chromium; a minute
# make formal     proofs about components of the RTL; several minutes
# make docs       builds the documentation site in out/site; warnings and dead links fail
# make pages      runs the commands of its pages, slow ones too, and writes what they print now
# make lint types contracts wheel     what CI checks besides the tests
# make clean      removes what the targets above leave behind, .venv included

# The newest interpreter that starts, is 3.11 or later and can make virtual environments. Wheels of
# the compiled dependencies come late to a new Python, so plain `python3` is asked last.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$p; break; }; done)

VENV := .venv
BIN := $(VENV)/bin

# Dependencies come as wheels only: no compiler is needed, and none is started by surprise.
export PIP_ONLY_BINARY := :all:
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := run
.DELETE_ON_ERROR:
.PHONY: run test test-rtl coverage exact formal large-report docs pages lint types contracts wheel clean

run: $(VENV)/.installed
	@mkdir -p out
	$(BIN)/vta run resnet18 -c default --compare --json out/resnet18.json --roofline out/roofline.png

test: $(VENV)/.installed-dev
	tests/browser/install_chromium.sh
	$(BIN)/python -m pytest -n auto -q

# A failing program does not stop the rest, nor the report.
test-rtl: export VTA_COVERAGE_DIR = $(CURDIR)/out/coverage
test-rtl: $(VENV)/.installed-dev
	rm -rf $(VTA_COVERAGE_DIR)
	status=0; \
	$(BIN)/python -m pytest -n auto -q tests/cocotb tests/cocotb/every_machine.py \
		tests/hw tests/hw/every_machine.py || status=$$?; \
	$(BIN)/python tests/hw/cover.py --add $(VTA_COVERAGE_DIR) || status=$$?; \
	exit $$status

coverage: $(VENV)/.installed-dev
	$(BIN)/python tests/hw/cover.py

exact: $(VENV)/.installed-dev
	$(BIN)/python tests/cosim/exact.py

formal: $(VENV)/.installed-dev
	$(BIN)/python tests/formal/prove.py

# Material's notice about its own future would be taken for a warning of the build.
docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pages: $(VENV)/.installed-dev
	$(BIN)/python tests/lib/doc_page.py README.md docs/start.md docs/machine.md \
		$(wildcard docs/walkthroughs/*.md docs/howto/*.md)

large-report: $(VENV)/.installed-dev
	tests/browser/install_chromium.sh
	VTA_REPORT_POINTS=5000 $(BIN)/python -m pytest tests/browser -k thousands -q -s

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

wheel: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --wheel

clean:
	rm -rf $(VENV) dist build out

# Stamps: an installation is repeated only when what it depends on has changed.
$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.created
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.created:
	@if [ -z "$(PYTHON)" ]; then \
		echo "make: no Python 3.11 or later with the venv module was found;" \
			"install one (Debian, Ubuntu: apt install python3-venv)" \
			"or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; fi
	@$(BIN)/python -c '' 2>/dev/null || "$(PYTHON)" -m venv --clear $(VENV)
	@touch $@
