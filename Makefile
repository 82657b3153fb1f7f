# The front door. Meson and Ninja build, in build/; this file only knows what people ask for.

PREFIX ?= /usr/local
SETUP  ?= scripts/setup

FUZZ_SECONDS ?= 60

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

.PHONY: test-browser
test-browser: all                ## the page of rws serve in Debian's chromium, driven by a script
	@$(SETUP) browser
	python3 tests/test_browser.py build/rws

.PHONY: load
load: all                        ## rws serve under load from wrk: requests per second, latencies, memory
	@$(SETUP) browser
	tests/load.py build/rws $(LOAD)

.PHONY: bench
bench: all                       ## side by side: our program, hand-written C, PyTorch (installs Debian's python3-torch)
	@$(SETUP) bench
	@ninja -C build bench/floor/floor_gmm
	bench/run --build build --json build/bench.json --picture build/bench.svg

.PHONY: examples
examples: all                    ## the programs in examples/
	@ninja -C build examples

.PHONY: asan
asan: build-asan/build.ninja     ## the test suite with AddressSanitizer and UBSan, in build-asan/
	$(call run_tests,build-asan)

.PHONY: valgrind
valgrind: build-valgrind/build.ninja ## the tests of the engine and what it stands on, under valgrind
	$(call run_tests,build-valgrind,--setup valgrind $(addprefix --suite=,base tensor engine dist nn optim))

.PHONY: tsan
tsan: build-tsan/build.ninja     ## the tests that use threads, with ThreadSanitizer, in build-tsan/
	$(call run_tests,build-tsan,--timeout-multiplier 10 fiber engine posterior golden)

.PHONY: test-cluster
test-cluster: all                ## one run over real MPIs, sweeps on a real Slurm, hosts made of namespaces: < 10 minutes
	@ninja -C build
	tests/cluster/run build

.PHONY: fuzz
fuzz: all                        ## the readers of files under libFuzzer, each for FUZZ_SECONDS (60); needs clang
	@$(SETUP) extra
	tests/fuzz/run $(FUZZ_SECONDS)

.PHONY: install
install: build/build.ninja       ## program, libraries, headers, rws.pc, man pages, gallery under PREFIX (/usr/local), in DESTDIR
	@meson configure build -Dprefix='$(PREFIX)'
	@ninja -C build installed
	DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild
	@[ -n '$(DESTDIR)' ] || [ "$$(id -u)" != 0 ] || ldconfig

.PHONY: format
format:                          ## clang-format over the C files
	find include src tests examples bench python '(' -name '*.[ch]' -o -name '*.cpp' ')' -exec clang-format -i {} +

.PHONY: clean
clean:                           ## forget everything that was built
	rm -rf build build-asan build-tsan build-valgrind build-fuzz

.PHONY: help
help:                            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

.PHONY: setup
setup:
	@$(SETUP)

build/build.ninja: | setup
	meson setup build

build-asan/build.ninja: | setup
	meson setup build-asan --buildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false

build-tsan/build.ninja: | setup
	meson setup build-tsan --buildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false

build-valgrind/build.ninja: | setup
	meson setup build-valgrind --buildtype=debugoptimized -Darch=x86-64-v3 # valgrind knows no AVX-512
