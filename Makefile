# Everything a developer types. `make` alone tells what there is.

VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
LOCK   := requirements/lock.txt
IMAGE  := requirements/image.txt
MUTANTS := requirements/mutants.txt
RUN    := requirements/run.txt
DOCS   := requirements/docs.txt
WEB     := requirements/web.txt
# The Python to build the environment with: the first of these that is new enough, or `make PYTHON=...`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)
# How many processes run the tests.
JOBS   ?= 2
# How long the random tests of `make soak` run, in minutes.
SOAK_MINUTES ?= 60
# More arguments for pytest, or for `enbloc up`: make test ARGS="-k queue -x", make run ARGS="--port 8002".
ARGS   ?=

# An environment with pip in it, unless there is one.
MAKE_VENV = test -n "$(PYTHON)" || { echo "enbloc needs Python 3.11 or newer; none was found on the PATH" >&2; exit 1; }; \
	test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV) || \
	{ echo "could not make $(VENV): on Debian and Ubuntu, install the package python3-venv" >&2; exit 1; }

# A start takes 0.3 s of CPU less with compiled modules, and some environments do not let Python write them itself.
COMPILE = $(BIN)/python -m compileall -q src

.DEFAULT_GOAL := help
.PHONY: help setup run docs test golden golden-diff web helm image release soak mutants lint format bench e2e e2e-node operators lock clean

help: ## tell what there is to make
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make the environment in .venv (the others do it when needed)

# Made once; again when the pinned versions or the project's description change.
# Every package is checked against its hash; the project itself is installed as a link to src/.
$(READY): $(LOCK) pyproject.toml
	@$(MAKE_VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(LOCK)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	$(COMPILE)
	@touch $@ $(VENV)/.runnable

run: $(VENV)/.runnable ## run a cluster with the quickstart example, until Ctrl-C
	@$(BIN)/enbloc up --load examples/quickstart.yaml $(ARGS)

# What running needs, and no tool of developers; `make setup` brings those, in the same place.
$(VENV)/.runnable: $(RUN) pyproject.toml
	@$(MAKE_VENV)
	@echo "installing what running needs into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(RUN)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@$(COMPILE)
	@touch $@

docs: $(VENV)/.docs ## build the site of docs/ into build/site; a broken link is an error
	$(BIN)/python scripts/reference_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "build/site/index.html"

$(VENV)/.docs: $(READY) $(DOCS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(DOCS)
	@touch $@

test: $(READY) ## run the whole test suite (but for soak, e2e and operators)
	@$(COMPILE)
	$(BIN)/python -m pytest -n $(JOBS) -m "not soak and not e2e and not web and not helm and not node and not operators" $(ARGS)

# ONLY is a pattern of names of scenarios: make golden ONLY='found/*'. Without it, rows of scenarios that are gone go.
golden: $(READY) ## write the digests of the golden scenarios anew (ONLY=pattern), and print which changed
	cd tests && ../$(BIN)/python -m golden write --jobs $(JOBS) $(if $(ONLY),--only '$(ONLY)')

golden-diff: $(READY) ## print what they decide and say that differs from a revision (BASE=HEAD, ONLY=pattern)
	@cd tests && ../$(BIN)/python -m golden diff --jobs $(JOBS) $(if $(BASE),--base '$(BASE)') $(if $(ONLY),--only '$(ONLY)')

# Needs chromium on the PATH (Debian: apt-get install chromium). SHOTS=FOLDER keeps screenshots and figures.
# tests/browser comes last: Playwright keeps an event loop in the process from its first page on.
web: $(VENV)/.web ## test the dashboard in a real browser (needs chromium)
	ENBLOC_SHOTS=$(SHOTS) $(BIN)/python -m pytest -m web -s tests/web/test_page.py tests/browser $(ARGS)

$(VENV)/.web: $(READY) $(WEB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(WEB)
	@touch $@

soak: $(READY) ## run the long random tests, with fresh seeds, for SOAK_MINUTES (60) and a little more
	@$(COMPILE)
	HYPOTHESIS_PROFILE=soak ENBLOC_SOAK_MINUTES=$(SOAK_MINUTES) $(BIN)/python -m pytest -n $(JOBS) -m soak $(ARGS)

# Which changes of the engine's code does no test notice? A sample; SAMPLE, SEED and ONLY choose it, TESTS the tests.
mutants: $(VENV)/.mutants ## try a sample of mutants of the engine against the tests
	$(BIN)/python scripts/mutants.py --jobs $(JOBS) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) \
		$(if $(ONLY),--only $(ONLY)) $(if $(TESTS),--tests "$(TESTS)")

$(VENV)/.mutants: $(READY) $(MUTANTS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(MUTANTS)
	@touch $@

lint: $(READY) ## check style, types and the direction of imports
	@status=0; for check in "ruff check ." "ruff format --check ." "mypy" "lint-imports --no-logo"; do \
		echo "$$check"; $(BIN)/$$check || status=1; done; exit $$status

format: $(READY) ## put the code into its format
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

# Exponents and ratios only: they are much the same on any machine.
bench: $(READY) ## measure the engine, and fail if costs grow clearly faster than expected
	$(BIN)/python -m benchmarks engine
	$(BIN)/python -m benchmarks growth --expect benchmarks/growth.json

# Builds the control plane the first time (needs Go; 8 to 25 minutes), into a cache outside this folder.
e2e: $(READY) ## run against a real Kubernetes control plane (needs Go)
	@$(BIN)/python tests/e2e/binaries.py
	$(BIN)/python -m pytest -m e2e tests/e2e $(ARGS)

# Needs root, buildah and mmdebstrap (Debian: apt-get install buildah mmdebstrap), and Python 3.11 in .venv.
image: $(READY) ## build the image without a Docker engine, into build/enbloc-image.tar
	@mkdir -p build
	scripts/image.sh localhost/enbloc:$$($(BIN)/python -c 'from enbloc.version import __version__; print(__version__)') build/enbloc-image.tar

# The same commit gives the same bytes. RELEASE_IMAGE=no leaves the image out, which needs root, buildah and mmdebstrap.
release: $(READY) ## build wheel, archive of the sources, chart and image of this version into dist/
	IMAGE=$(RELEASE_IMAGE) scripts/release.sh

# Builds Helm the first time (needs Go; 1 to 10 minutes), into the same cache.
helm: $(READY) ## compare the Helm chart with `enbloc install` (needs Go)
	@$(BIN)/python tests/helm/programs.py
	$(BIN)/python -m pytest -m helm tests/helm $(ARGS)

# Needs root, Go, and from Debian: apt-get install containerd runc containernetworking-plugins iptables iproute2 conntrack
# busybox-static buildah mmdebstrap. Builds kubelet, kube-proxy and kube-scheduler the first time (5 to 20 minutes), into
# the same cache. The tests run in namespaces of their own; what they started ends with them, whatever happens.
e2e-node: $(READY) ## run the installed image on a real node with containers (needs root and Go)
	@$(BIN)/python tests/node/programs.py
	@test -f build/enbloc-image.tar || $(MAKE) image
	ENBLOC_NODE_NAMESPACES=1 unshare --mount --net --pid --fork --kill-child --mount-proc \
		$(BIN)/python -m pytest -m node tests/node $(ARGS)

# Builds the operators that the chosen tests need the first time (needs Go), into the same cache: ARGS="-k kuberay" builds
# one. ENBLOC_OPERATORS=all takes the next release of Kubernetes, too. Writes the tables of docs/operators.md.
operators: $(READY) ## run real operators and their manifests against a real control plane and `enbloc up` (needs Go)
	$(BIN)/python -m pytest -m operators tests/operators $(ARGS)

lock: ## pin the dependencies anew (needs uv); UPGRADE=1 takes newer versions
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet $(if $(UPGRADE),--upgrade) -o $(LOCK)
	echo hatchling | uv pip compile pyproject.toml - --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --upgrade -c $(LOCK) -o $(IMAGE)
	uv pip compile pyproject.toml --group run --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet -c $(LOCK) -o $(RUN)
	uv pip compile --group docs --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet $(if $(UPGRADE),--upgrade) -c $(LOCK) -o $(DOCS)
	uv pip compile --group mutants --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet $(if $(UPGRADE),--upgrade) -c $(LOCK) -o $(MUTANTS)
	uv pip compile --group web --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet $(if $(UPGRADE),--upgrade) -c $(LOCK) -o $(WEB)

clean: ## remove the environment and what the tools left behind
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
