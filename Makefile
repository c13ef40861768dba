# SPDX-License-Identifier: Apache-2.0
# Wherry. `make help` lists the targets.
SHELL := /bin/bash
PY := .venv/bin/python
JOBS ?= $(shell nproc)
# Programs that tools/setup.sh unpacks there; the machine's own come first.
export PATH := $(PATH):$(CURDIR)/.venv/bin

.PHONY: ddr4 guest soak all-cores formal synth test-hdl model spec quick-lint help setup setup-run build build-run run test test-cpp test-go test-asan test-tsan test-python test-python-machine test-python-rest ctest-release fuzz fuzz-short lint format bench bench-move bench-route bench-kv bench-bypass report lock clean guest-probe bench-probe room
.DEFAULT_GOAL := help

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup:  ## install all that is missing (Debian packages, .venv); says beforehand what and how much
	@tools/setup.sh

setup-run:
	@tools/setup.sh run

# `make run` configures build/release without tests: a build of everything configures it again.
build-%: setup
	@mkdir -p build
	@{ [ -f build/$*/build.ninja ] && ! grep -q '^WHERRY_TESTS:BOOL=OFF' build/$*/CMakeCache.txt; } || \
	  cmake --preset $* -DWHERRY_TESTS=ON >build/$*.configure.log 2>&1 || { cat build/$*.configure.log; exit 1; }
	cmake --build --preset $* -j $(JOBS)

# What the main job runs, and no more.
build-run: setup-run
	@mkdir -p build
	@[ -f build/release/build.ninja ] || cmake --preset release -DWHERRY_TESTS=OFF >build/release.configure.log 2>&1 || \
	  { cat build/release.configure.log; exit 1; }
	cmake --build --preset release -j $(JOBS) --target wherryd _core

build: build-release build/linearizable  ## the optimised build, with the Python module

# The judge of kv histories. The script knows whether it is fresh.
build/linearizable: setup
	@tools/linearizable/build

run: build-run  ## the main job: LAMMPS runs, Wherry offloads, an independent reader checks the physics
	$(PY) apps/lammps/lammps_lj.py
	@echo
	@echo 'Put the command `wherry` and this Python on the PATH of your shell with:  . .venv/bin/activate'

# Four lanes on two cores: each waits now and then, for a process or a clock, while another computes (docs/house.md).
test: room quick-lint build test-go  ## everything that CI runs
	@tools/lanes.sh build/lanes test-python-machine test-python-rest "test-hdl fuzz-short" "ctest-release test-asan test-tsan"

# Said at the beginning, since a full disk ends the run half an hour later.
room:
	@[ -d build/asan ] || [ $$(df --output=avail -BG . | tail -1 | tr -dc 0-9) -ge 14 ] || \
	  echo 'make test: builds and tests take about 14 GiB here, and less is free' >&2

test-cpp: build ctest-release

ctest-release:
	ctest --preset release; status=$$?; $(PY) tools/ctest_report.py build/release && exit $$status

test-go: setup
	cd tools/linearizable && go test ./...

test-asan: build-asan
	ctest --preset asan; status=$$?; $(PY) tools/ctest_report.py build/asan && exit $$status

test-tsan: build-tsan
	ctest --preset tsan; status=$$?; $(PY) tools/ctest_report.py build/tsan && exit $$status

test-python: build
	$(PY) -m pytest -q --durations=30 python/tests

# The same in two halves that may run at once: python/tests/conftest.py, WHOLE_MACHINE.
test-python-machine:
	$(PY) -m pytest -q --durations=20 -m machine python/tests

test-python-rest:
	$(PY) -m pytest -q --durations=20 -m 'not machine' python/tests

guest: build  ## a Linux guest with an IOMMU: `wherry bypass` with QEMU's e1000e and the RTL (two minutes; fetches 71 MB)
	$(PY) tools/guest/run.py --json build/guest.json

ddr4: build-release  ## the DDR4 model beside litedram's controller, cell by cell (minutes; fetches 11 MB)
	cmake --build --preset release -j $(JOBS) --target ddr4_table
	$(PY) tools/litedram.py --json build/ddr4.json

guest-probe: build  ## a Linux guest with QEMU's edu and ivshmem and with Soft-RoCE: every device path of probe that they have (a minute; fetches 72 MB)
	$(PY) tools/guest/probe.py --json build/guest-probe.json

soak: build  ## an hour of clients and readers that come, go and die: the agent must hold no more at its end
	PYTHONPATH=python $(PY) tools/soak.py

test-hdl: setup  ## RTL: simulations, proofs, and the resource table of the small cells
	$(PY) -m pytest -q --durations=20 hdl
	$(PY) tools/synth.py --check

all-cores: setup  ## the kv core's tests on every form of it, from random states, and on Yosys' netlist (a quarter of an hour)
	$(PY) -m pytest -q -n $(JOBS) hdl/kv/tb/all_cores.py

formal: setup  ## prove the stream cells, a line for each property
	$(PY) tools/formal.py

synth: setup  ## synthesise the RTL and write docs/resources.md
	$(PY) tools/synth.py

fuzz-short: build-fuzz
	tools/fuzz.sh 5

fuzz: build-fuzz  ## every fuzz target for five minutes
	tools/fuzz.sh 300

model: setup  ## search the kv protocol's model in every configuration (ten minutes, up to 7 GB)
	$(PY) tools/check_model.py

spec: setup  ## write what is generated from spec/
	$(PY) tools/generate_spec.py
	$(PY) tools/fidelity.py

lint: build  ## clang-format, the include rule, ruff, mypy, the RTL's linters, and clang-tidy (minutes)
	tools/lint.sh

quick-lint: setup
	tools/lint.sh --quick

format:  ## put every file into the house format
	git ls-files '*.cpp' '*.hpp' '*.h' | xargs .venv/bin/clang-format -i
	gofmt -w tools/linearizable
	.venv/bin/ruff format python apps examples hdl tools
	.venv/bin/ruff check --fix python apps examples hdl tools
	$(PY) tools/lint_hdl.py --fix

bench: bench-move bench-route bench-kv bench-bypass bench-probe  ## reproduce the papers' evaluations as ratios, into build/bench-*.json

bench-move: build
	.venv/bin/wherry bench move --json build/bench-move.json

bench-route: build
	.venv/bin/wherry bench route --json build/bench-route.json

bench-kv: build
	.venv/bin/wherry bench kv --json build/bench-kv.json

bench-bypass: build
	.venv/bin/wherry bench bypass --json build/bench-bypass.json

bench-probe: build
	.venv/bin/wherry bench probe --json build/bench-probe.json

report:  ## one HTML page from the benchmarks' JSON: build/report.html
	.venv/bin/wherry report build/bench-*.json --out build/report.html

lock: setup  ## resolve requirements-run.in and requirements.in into their lock files
	$(PY) tools/lock.py

clean:
	rm -rf build python/wherry/_native/*.so
