# SPDX-License-Identifier: Apache-2.0
# Wherry. `make help` lists the targets.
SHELL := /bin/bash
PY := .venv/bin/python
JOBS ?= $(shell nproc)
# Programs that tools/setup.sh unpacks there; the machine's own come first.
export PATH := $(PATH):$(CURDIR)/.venv/bin

.PHONY: ddr4 linux-trace guest soak all-cores formal synth test-hdl model spec quick-lint help setup setup-run build build-run run test test-long test-cpp test-go test-asan test-tsan test-python test-python-machine test-python-rest ctest-release fuzz fuzz-short lint format bench bench-move bench-route bench-kv bench-bypass report lock clean guest-probe bench-probe room wheel try-wheel docs
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
	cmake --build --preset release -j $(JOBS) --target wherryd _core wherry_lammps wherry_lammps_peers

build: build-release build/linearizable  ## the optimised build, with the Python module

# The judge of kv histories. The script knows whether it is fresh.
build/linearizable: setup
	@tools/linearizable/build

run: build-run  ## the main job: LAMMPS runs, Wherry offloads, a reader checks the physics; then what `fix wherry` and other ways cost
	$(PY) apps/lammps/lammps_lj.py
	@echo
	@echo 'Put the command `wherry` and this Python on the PATH of your shell with:  . .venv/bin/activate'
	@echo
	$(PY) apps/lammps/lammps_fix.py

# Lint has one process, the build two. Then five lanes on two cores: each waits now and then, for a process or a clock, while another computes
# (docs/project/house.md).
test: room setup  ## everything that CI runs
	@tools/lanes.sh build/lanes/build "build test-go" quick-lint
	@tools/lanes.sh build/lanes test-python-machine test-python-rest test-hdl "ctest-release test-tsan fuzz-short" test-asan

# The objects are those of the release build, from ccache where there is one; the linking is another (cmake/Portable.cmake).
wheel: setup  ## dist/wherry-*.whl, for every Linux since glibc 2.28 with Python 3.11 (docs/start/install.md)
	@tools/httplib.sh
	@cmake --preset release -B build/portable -DWHERRY_TESTS=OFF -DWHERRY_BENCH=OFF -DWHERRY_PORTABLE=ON -DWHERRY_HTTPLIB_SOURCE=$(CURDIR)/build/httplib \
	  >build/portable.configure.log 2>&1 || { cat build/portable.configure.log; exit 1; }
	cmake --build build/portable -j $(JOBS) --target $$($(PY) tools/wheel.py --targets)
	$(PY) tools/wheel.py --build build/portable --at-most manylinux_2_28

try-wheel: wheel  ## install it in an empty Debian 12, and run `wherry demo` there (minutes; root)
	tools/try_wheel.sh

# All tests plain, too, and all seeds: of the sanitized tests, and of the clusters of cores.
test-long: room setup  ## what `make test` leaves out: all C++ tests plain, and all seeds (docs/project/house.md)
	@mkdir -p build
	cmake --preset release -DWHERRY_TESTS=ON -DWHERRY_ALL_TESTS=ON >build/release.configure.log
	cmake --preset asan -DWHERRY_TESTS=ON -DWHERRY_ALL_SEEDS=ON >build/asan.configure.log
	@$(MAKE) build ctest-release test-asan
	ALL_SEEDS=1 $(PY) -m pytest -q --durations=20 python/tests/test_kv_cluster.py
	cmake --preset release -DWHERRY_ALL_TESTS=OFF >build/release.configure.log
	cmake --preset asan -DWHERRY_ALL_SEEDS=OFF >build/asan.configure.log

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
	ctest --preset asan; status=$$?; $(PY) tools/ctest_report.py build/asan build/release && exit $$status

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

linux-trace: build-release  ## boot Linux on the simulated soft core, and record its bus (some ten minutes; fetches 165 MB)
	cmake --build --preset release -j $(JOBS) --target designs_linux
	$(PY) tools/linux_trace.py

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

synth: setup  ## synthesise the RTL and write docs/reference/resources.md
	$(PY) tools/synth.py

fuzz-short: build-fuzz
	tools/fuzz.sh 2

fuzz: build-fuzz  ## every fuzz target for five minutes
	tools/fuzz.sh 300

model: setup  ## search the kv protocol's model in every configuration (ten minutes, up to 7 GB)
	$(PY) tools/check_model.py

spec: setup  ## write what is generated from spec/
	$(PY) tools/generate_spec.py
	$(PY) tools/fidelity.py
	$(PY) tools/commands_page.py

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

docs: setup  ## the documentation as one site, with the API reference: build/docs/html; dead links and undescribed names are errors
	$(PY) tools/docs_site/build.py

lock: setup  ## resolve requirements-run.in and requirements.in into their lock files
	$(PY) tools/lock.py

clean:
	rm -rf build python/wherry/_native/*.so
