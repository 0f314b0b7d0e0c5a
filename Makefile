# `make demo` and `make test` set up whatever is missing, step by step, and then run. Each step
# leaves a stamp; what has not changed is not done again.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BUILDIFIER_VERSION := 8.2.1
# Of `make measure`: any value measures what the README shows alone.
README ?=
# Of `make test-tensorflow`; where no Keras is named, the newest.
VERSION ?= 2.20
KERAS ?=
# Of `make fuzz`.
COUNT ?= 2000
SEED ?= 1
# Of `make test-scale`: how long each server is under load.
LOAD_SECONDS ?= 12

venv := .venv
python := $(venv)/bin/python
scale_venv := .venv-scale
setup := PYTHON=$(PYTHON) build_tools/setup.sh
library := tf_blockdnn/_native/libtf_blockdnn.so
library_sources := $(shell find cc third_party WORKSPACE BUILD .bazelrc .bazelversion \
  build_tools/bazel build_tools/native.py -type f)

# What each step leaves behind.
system := .build/system-done
venv_made := $(venv)/venv-done
required := $(venv)/requirements-done
hub_required := $(venv)/requirements-kerashub-done
face_required := $(venv)/requirements-huggingface-done
strangers := build/benchmarks/strangers
dev_required := $(venv)/requirements-dev-done
buildifier := $(venv)/buildifier-done
built := .build/library-done
installed := $(venv)/installed-done
wheel := .build/wheel-done
scale_required := $(scale_venv)/requirements-done
scale_installed := $(scale_venv)/installed-done

.PHONY: help demo docs site test test-grid fuzz test-keras test-scale test-tensorflow test-tsan test-asan build wheel bench measure zoo bench-layers format check-format clean distclean

help: ## lists the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

demo: $(installed) ## optimises a trained network and compares it with the original
	@$(venv)/bin/tf-blockdnn demo --folder build/demo

test: $(installed) $(dev_required) $(buildifier) ## runs all tests and format checks
	@build_tools/test.sh

test-grid: $(installed) $(dev_required) ## compares recurrent layers of all sizes, and each instruction set
	@TF_BLOCKDNN_FULL_GRID=1 $(venv)/bin/pytest -q -k "grid or test_cap" \
	  tests/python/layers/test_recurrent.py tests/python/ops/test_isa_cap.py

fuzz: $(installed) $(dev_required) ## runs COUNT random calls, models, graphs, shapes and steps from SEED on
	@TF_BLOCKDNN_EXAMPLES=$(COUNT) $(venv)/bin/pytest -q -m hypothesis --hypothesis-seed=$(SEED) \
	  --ignore=tests/python/rewriter/test_random_graphs.py
	@TF_BLOCKDNN_EXAMPLES=$(COUNT) TF_BLOCKDNN_CASES=$$(($(COUNT) / 10 + 40)) TF_BLOCKDNN_SEED=$(SEED) \
	  $(venv)/bin/pytest -q -s --hypothesis-seed=$(SEED) tests/python/fuzz tests/python/rewriter/rules \
	  tests/python/rewriter/test_random_graphs.py tests/python/usage

test-keras: $(installed) $(dev_required) ## runs Keras's own tests of layers with ours in their place
	@$(python) tests/python/layers/keras_own.py

test-scale: $(scale_installed) ## runs models on Ray, Beam, Spark, in servers and on two workers
	@TF_BLOCKDNN_LOAD_SECONDS=$(LOAD_SECONDS) $(scale_venv)/bin/pytest -q -rfEsP tests/scale

test-tensorflow: ## builds against TensorFlow VERSION, such as 2.19, and runs Python tests there
	@PYTHON=$(PYTHON) build_tools/test_tensorflow.sh $(VERSION) $(KERAS)

test-tsan: $(installed) ## runs the tests of threads under ThreadSanitizer
	@build_tools/bazel test --build_tests_only --test_tag_filters=tsan //tests/cc/...

test-asan: $(installed) ## runs the C++ tests under AddressSanitizer and UBSan
	@build_tools/bazel test --config=asan --build_tests_only --test_tag_filters=-tsan,-native \
	  //tests/cc/...

build: $(installed) ## builds the library and installs the package into .venv
	@echo "$(library) is up to date"

wheel: $(wheel) ## makes a wheel in dist/ that installs without a compiler
	@ls dist/*.whl

bench: $(installed) ## measures whole networks against their peers
	@$(python) benchmarks/run_models.py

measure: $(installed) $(hub_required) ## measures what the pages show (README=1: what the README shows, 15 minutes) and writes them
	@cd benchmarks && ../$(python) -m measurements $(if $(README),--readme --minutes 15)

zoo: $(installed) $(hub_required) $(face_required) $(strangers) ## checks and measures networks of all kinds against TensorFlow
	@$(python) benchmarks/zoo.py && $(python) benchmarks/backbones.py && \
	  $(python) benchmarks/huggingface.py && $(python) benchmarks/zoo.py --page && \
	  $(python) benchmarks/strangers.py

bench-layers: $(installed) ## measures each convolution against oneDNN's
	@$(python) benchmarks/run_layers.py

docs: $(installed) ## writes the pages and pictures that are made from code and measurements
	@cd benchmarks && ../$(python) -m measurements --pages
	@$(python) docs/make_api.py
	@$(python) docs/make_support.py
	@$(python) docs/draw_overview.py
	@$(python) docs/draw_convolution.py

site: $(dev_required) ## builds the documentation as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(python) -m mkdocs build --strict
	@echo "build/site/index.html; its search needs a server: $(python) -m http.server -d build/site"

format: $(dev_required) $(buildifier) ## formats all sources
	@build_tools/format.sh fix

check-format: $(dev_required) $(buildifier) ## checks the format of all sources
	@build_tools/format.sh check

clean: ## removes what was built
	rm -rf .build/*-done build dist tf_blockdnn/_native tf_blockdnn.egg-info
	[ ! -f .build/bazel-command ] || BAZEL= build_tools/bazel clean

distclean: clean ## removes the environments, too
	rm -rf $(venv) $(scale_venv) .build

$(system): build_tools/debian-packages.txt
	@$(setup) system
	@touch $@

$(venv_made): | $(system)
	@$(setup) venv
	@touch $@

$(required): requirements.txt | $(venv_made)
	@$(setup) install -r requirements.txt
	@touch $@

$(dev_required): requirements-dev.txt $(required)
	@$(setup) install -r requirements-dev.txt
	@touch $@

$(hub_required): benchmarks/requirements-kerashub.txt $(required)
	@$(setup) install -r benchmarks/requirements-kerashub.txt
	@touch $@

$(face_required): benchmarks/requirements-huggingface.txt $(required)
	@$(setup) install -r benchmarks/requirements-huggingface.txt
	@touch $@

$(strangers): benchmarks/requirements-strangers.txt $(required)
	@rm -rf $@
	@$(setup) install --no-deps --target $@ -r $<
	@touch $@

$(buildifier): Makefile | $(dev_required)
	@$(setup) buildifier $(BUILDIFIER_VERSION)
	@touch $@

$(built): $(library_sources) $(required) | $(system)
	@echo "==> C++ library ($(library))"
	@$(python) build_tools/native.py
	@touch $@

$(installed): pyproject.toml setup.py build_tools/backend.py $(required) $(built)
	@$(setup) install --no-build-isolation --no-deps --editable .
	@touch $@

$(wheel): $(built) pyproject.toml setup.py $(shell find python tf_blockdnn -name '*.py')
	@rm -rf dist
	@$(python) -m pip -q wheel --no-build-isolation --no-deps --wheel-dir dist .
	@touch $@

$(scale_required): requirements-scale.txt
	@$(setup) java
	@VENV=$(scale_venv) $(setup) venv
	@VENV=$(scale_venv) $(setup) install -r requirements-scale.txt
	@touch $@

$(scale_installed): $(wheel) $(scale_required)
	@VENV=$(scale_venv) $(setup) install --no-deps --force-reinstall dist/*.whl
	@touch $@
