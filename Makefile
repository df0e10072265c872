# A few verbs; everything runs in .venv, which `make env` makes. PYTHON= chooses the Python, PORT= the lab's port.
#   make lab    set up, then open JupyterLab on the labs        make check    ruff, mypy, oxlint
#   make test   set up, then run every test                     make long     the tests that take minutes
#   make env    set up only; a second call is fast              make interop  the tests against a real RocketMQ
#   make labs   build the notebooks from their sources          make bench    measure
#   make clean  remove what was made                            make lock     renew requirements.lock (needs uv)
#   make site   the course as a static web site, in build/site
#   make measure  print how long files, functions and wings are, circles of imports, calls per message
# More for pytest:  make test ARGS="tests/rocketmq/store -x"      in one process, one by one:  make test ARGS=-n0

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?=
PORT ?=
ARGS ?=
WORKERS := -n logical --maxprocesses=8 --dist=worksteal

.PHONY: env lab test check measure long interop labs site bench clean lock

env:
	@sh .ci/setup $(VENV) $(PYTHON)

lab: env
	@$(BIN)/mqlab lab $(if $(PORT),--port $(PORT))

test: env
	@echo "Running the tests in several processes. One folder alone: make test ARGS=tests/rocketmq/store"
	@$(BIN)/python -m pytest $(WORKERS) $(ARGS)

check: env
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/oxlint mqlab tests

measure: env
	@$(BIN)/python -m tests.tidy.measures $(ARGS)

long: env
	@$(BIN)/python -m pytest -m long $(ARGS)

interop: env
	@$(BIN)/python -m pytest -m "interop and not long" $(ARGS)

labs: env
	@$(BIN)/python -m solutions.build $(ARGS)

site: env
	@$(BIN)/mqlab site --out build/site $(ARGS)

bench: env
	@$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
	find mqlab tests benchmarks solutions -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Kept back: argon2-cffi-bindings 26 has no wheel for Intel Macs; jsonschema from 4.25 on builds a parser of 3 s at
# import, in every pytest and JupyterLab.
KEPT_BACK := argon2-cffi-bindings<26 jsonschema<4.25

lock:
	@printf '%s\n' $(patsubst %,'%',$(KEPT_BACK)) | \
	uv pip compile pyproject.toml --constraints /dev/stdin --extra dev --extra bench --universal --no-strip-extras --quiet \
	   --fork-strategy fewest --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	   > requirements.lock.new
	@echo "# Made by 'make lock' from pyproject.toml: Linux and macOS, Python 3.11 to 3.13. Read by uv and pip alike." \
	   > requirements.lock
	@sed 's|-c /dev/stdin|kept back, see Makefile|' requirements.lock.new >> requirements.lock
	@rm requirements.lock.new
