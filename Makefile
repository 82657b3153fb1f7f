# The targets that people use. Meson and Ninja build, in build/.

PREFIX ?= /usr/local
SETUP  ?= scripts/setup

# make fuzz SECONDS=600; FUZZ_SECONDS is its older name.
SECONDS ?= $(or $(FUZZ_SECONDS),60)

# make matrix FLAVOURS='clang v2'; all of them if not given.
FLAVOURS ?=

# make test-hard SOAK_SECONDS=60
SOAK_SECONDS ?= 1800

# Builds and runs the tests of a folder, then counts them alone on the last line; the exit status is meson's.
define run_tests # folder, options
	@rm -f $(1)/meson-logs/testlog*.txt; \
	meson test -C $(1) --print-errorlogs $(2); status=$$?; \
	for log in $(1)/meson-logs/testlog*.txt; do \
	    [ ! -f $$log ] || awk '/^(Ok|Expected Fail): +[0-9]/            { passed += $$NF } \
	                           /^(Fail|Unexpected Pass|Timeout): +[0-9]/ { failed += $$NF } \
	                           END { printf "%d passed, %d failed\n", passed, failed }' $$log; \
	done; \
	exit $$status
endef

.PHONY: all
all: build/build.ninja           ## install what is missing, configure, build: build/rws
	@ninja -C build program

.PHONY: demo
demo: all                        ## a short tour: train, compare, draw
	build/rws demo

.PHONY: test
test: all                        ## the test suite; the last line is "N passed, N failed"
	$(call run_tests,build)

.PHONY: test-hard
test-hard: all                   ## failing disks, lost power, changed bytes, lack of memory, 200 kills, a soak: 50 minutes
	@ninja -C build
	tests/hard.sh build $(SOAK_SECONDS)

.PHONY: test-browser
test-browser: all                ## the page of rws serve in Debian's chromium, driven by a script
	@$(SETUP) browser
	python3 tests/apps/serve/test_browser.py build/rws

.PHONY: load
load: all                        ## rws serve under load from wrk: requests per second, latencies, memory
	@$(SETUP) browser
	tests/apps/serve/load.py build/rws $(LOAD)

.PHONY: bench
JAX_PYTHON = python3
bench: all                       ## side by side: our program, hand-written C, PyTorch (installs Debian's python3-torch), JAX (JAX_PYTHON=…)
	@$(SETUP) bench
	@ninja -C build bench/floor/floor_gmm
	bench/run --build build --json build/bench.json --picture build/bench.svg
	@ninja -C build examples
	bench/jax --build build --python $(JAX_PYTHON)

.PHONY: examples
examples: all                    ## the programs in examples/
	@ninja -C build examples

.PHONY: matrix
matrix: setup                    ## every way to build (compilers, processors, sanitizers), each with its tests: an hour and a quarter
	@$(SETUP) extra
	tests/matrix $(FLAVOURS)

.PHONY: asan
asan: setup                      ## the test suite with AddressSanitizer and UBSan, a part of make matrix
	tests/matrix asan

.PHONY: valgrind-py
valgrind-py: build-matrix/valgrind/build.ninja ## the tests of the Python package, under valgrind, in the folder of make valgrind
	python/tests/valgrind.sh build-matrix/valgrind

build-matrix/valgrind/build.ninja:
	$(MAKE) valgrind

.PHONY: docs
docs: all                        ## the documentation as a site, build/docs/VERSION/index.html, for a browser without a server
	@$(SETUP) docs
	@ninja -C build rws.1 extension
	docs/site/build build/docs
	@/usr/bin/python3 tests/source/test_site.py build/docs

.PHONY: test-wheel
test-wheel:                      ## docs/python.md as a newcomer: pip install, the first example, a wheel without a compiler
	@$(SETUP) python
	python/tests/install.sh

.PHONY: wheels
wheels:                          ## wheels for Linux with glibc 2.31 or newer, build/wheels; PYTHONS="python3.11 …" names the Pythons
	@$(SETUP) wheels
	scripts/wheels $(PYTHONS)

.PHONY: tsan
tsan: setup                      ## the tests that use threads, with ThreadSanitizer, a part of make matrix
	tests/matrix tsan

.PHONY: valgrind
valgrind: setup                  ## the tests of the engine and what it stands on, under valgrind, a part of make matrix
	tests/matrix valgrind

.PHONY: analyse
analyse: build/build.ninja       ## static analysis: gcc -fanalyzer, clang-tidy, cppcheck
	@$(SETUP) extra
	tests/analyse $(TOOLS)

.PHONY: coverage
coverage: setup                  ## line and branch coverage of the test suite, a table for each folder
	@$(SETUP) extra
	tests/coverage

.PHONY: test-cluster
test-cluster: all                ## one run over real MPIs, sweeps on a real Slurm, hosts made of namespaces: < 10 minutes
	@ninja -C build
	tests/cluster/run build

.PHONY: fuzz
fuzz: setup                      ## the readers of files under libFuzzer, each for SECONDS (60); NAMES='csv npy' for some; needs clang
	@$(SETUP) extra
	tests/fuzz/run $(SECONDS) $(NAMES)

.PHONY: install
install: build-install/build.ninja ## for any processor of this kind: program, libraries, headers, rws.pc, man pages, gallery under PREFIX, in DESTDIR
	@meson configure build-install -Dprefix='$(PREFIX)'
	@ninja -C build-install installed
	DESTDIR='$(DESTDIR)' meson install -C build-install --no-rebuild
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig

.PHONY: format
format:                          ## clang-format over the C files
	find include lib models apps tests examples bench python '(' -name '*.[ch]' -o -name '*.cpp' ')' -exec clang-format -i {} +

.PHONY: clean
clean:                           ## forget everything that was built
	rm -rf build build-install build-matrix build-analyse build-coverage build-fuzz

.PHONY: help
help:                            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

.PHONY: setup
setup:
	@$(SETUP)

build/build.ninja: | setup
	meson setup build

build-install/build.ninja: | setup
	meson setup build-install -Darch=any -Dpython=disabled
