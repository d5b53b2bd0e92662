# GNU make; `make help` lists the targets.

PYTHON ?= python3
VENV   ?= .venv
PREFIX ?= /opt/spectrod
UNITDIR ?= /etc/systemd/system
USERUNITDIR ?= /etc/systemd/user
SYSUSERSDIR ?= /etc/sysusers.d
CONFDIR ?= /etc/spectrod
COMPLETIONDIR ?= /usr/share/bash-completion/completions
BINDIR ?= /usr/local/bin
# For staging the files of `install` (not the program: a virtual environment cannot be moved).
DESTDIR ?=
# Arguments of `spectrod run` and pytest: make run ARGS="--source signal:pink,-20"
ARGS ?=

# `uninstall` removes PREFIX as a whole, so it must be a folder of our own.
ifneq ($(words $(PREFIX)) $(words $(filter /%,$(PREFIX))),1 1)
$(error PREFIX=$(PREFIX): must be one absolute path without spaces)
endif

BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check
UV = $(BIN)/uv pip install --quiet

# What the tests need of the system: PortAudio and sound servers for it to record from (pulseaudio,
# and jackd2, which says what it loses; from Debian 13 on its tools are apart), a wall clock that can be set (faketime), recordings
# (alsa-utils, espeak-ng), the tool that generates and measures others (sox), and an OpenCL for
# processors that are too new for the compiler in pyopencl's wheel (pocl-opencl-icd), a device that
# looks for races in kernels (oclgrind, not in Debian 13), what the examples in C are made of, an MQTT broker, another
# loudness meter (libebur128), browsers ...
TEST_PACKAGES = libportaudio2 pulseaudio pulseaudio-utils libasound2-plugins jackd2 faketime \
    'jack_lsp=jack-example-tools?' alsa-utils espeak-ng sox pocl-opencl-icd 'oclgrind?' \
    gcc libc6-dev pkg-config libzmq3-dev libjansson-dev mosquitto libebur128-1 \
    chromium chromium-headless-shell 'firefox-esr?'
# ... and, for the tests under a real systemd, what builds and boots a container, a package
# for it, and an image of one.
SYSTEMD_PACKAGES = debootstrap systemd-container build-essential debhelper dpkg-dev fakeroot lintian buildah
ROOT := $(filter 0,$(shell id -u))

.DELETE_ON_ERROR:
# pip cannot run twice in one environment, whatever -j says.
.NOTPARALLEL:
.PHONY: help run test test-all test-share test-rest test-oldest test-releases test-arm64 release-needs test-needs test-packages rest-needs soak lint types imports check bench lock deb container docs pictures install uninstall clean

help:
	@echo "make run        analyse the sound card (or a test tone), show it here and on a page; ARGS=..."
	@echo "make test       every module and the main path, in minutes; ARGS=... goes to pytest"
	@echo "make test-all   all tests: every driver, every form of a kernel, soaks, systemd"
	@echo "make test-share  those of make test, and a third of the others, by the commit; SHARE=1, 2, 3"
	@echo "make test-oldest  the unit tests with the oldest versions of what spectrod needs"
	@echo "make test-releases  the unit tests on other releases of Debian, as root; RELEASES=$(RELEASES)"
	@echo "make test-arm64  the tests that need no OpenCL on an emulated arm64, as root"
	@echo "make lint       ruff, codespell, clang-format"
	@echo "make types      mypy"
	@echo "make imports    the import contracts"
	@echo "make check      lint, types, imports, test"
	@echo "make bench      every benchmark"
	@echo "make soak       random faults into a running daemon for an hour; HOURS=, SEED=, JSON="
	@echo "make docs       the documentation as a site, in site/"
	@echo "make pictures   make the pictures of the documentation again"
	@echo "make install    to $(PREFIX), with the systemd unit (as root)"
	@echo "make deb        a Debian package of it, in dist/"
	@echo "make container  an OCI image of it, with buildah"
	@echo "make uninstall  the reverse; configuration and recordings stay"
	@echo "make lock       take the newest versions of what it needs; LOCK=--upgrade"
	@echo "make clean      remove what make made here"

# --- the virtual environment: stamps say what is in it

$(VENV)/.pip:
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/packages python3-venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	    || { echo "PYTHON=$(PYTHON): must be Python 3.11 or later" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.pip
	$(PIP) install --editable '.[web]'
	@touch $@

$(VENV)/.uv: $(VENV)/.pip
	$(PIP) install uv
	@touch $@

# What tests and checks need: uv takes a tenth of pip's time. What users get, pip installs, as at their home.
$(VENV)/.group-%: $(VENV)/.installed $(VENV)/.uv
	$(UV) --python $(BIN)/python --group $*
	@touch $@

# --- running

# pip's PoCL refuses processors that are younger than its compiler; Debian's takes them.
OPENS_OPENCL = python -c 'from spectrod.analysis.engine import open_engine as o; o("opencl").close()'

$(VENV)/.opencl: $(VENV)/.installed
	@$(BIN)/$(OPENS_OPENCL) >/dev/null 2>&1 || scripts/packages pocl-opencl-icd \
	    || echo "without an OpenCL driver that works, NumPy computes" >&2
	@touch $@

run: $(VENV)/.installed $(VENV)/.opencl
	@scripts/packages libportaudio2 || echo "without PortAudio there is no sound card" >&2
	@exec $(BIN)/spectrod run --web $(ARGS)

bench: $(VENV)/.group-test $(VENV)/.opencl
	@set -e; for what in fft stft live "live --max-channels" "live --frames 1000000"; do \
	    echo "spectrod bench $$what"; $(BIN)/spectrod bench $$what; done
	@set -e; for script in benchmarks/bench_*.py; do $(BIN)/python "$$script"; done

# --- checking

# --ignore-scripts: the package brings ZeroMQ ready-made, and else would build it where that fails.
examples/node_modules/.installed: examples/package-lock.json
	@scripts/packages node=nodejs npm=npm
	@cd examples && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

tests/browser/node_modules/.installed: tests/browser/package-lock.json
	@scripts/packages node=nodejs npm=npm
	@cd tests/browser && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

# With TESTS=all or TESTS=share, those of that target.
ifneq ($(filter all share,$(TESTS)),)
test: test-$(TESTS)
else
test: test-needs
	$(PYTEST) $(or $(ARGS),$(PARALLEL) -m "not ($(REST))")
endif

# Exactly the tests that `test` leaves out; without root, less those that need it.
test-rest: rest-needs
	$(PYTEST) $(PARALLEL) $(IN_ORDER) -m "($(REST)) and not (alone or audio)$(NOT_SYSTEMD)"
	$(call AUDIO,($(REST)) and )
	$(ALONE)

# What CI runs, which needs 53 minutes for all. The same commit has the same tests again.
SHARES = 3
SHARE ?= $(shell echo $$((0x$$(git rev-parse --short=7 HEAD | cut -c1-7) % $(SHARES) + 1)))
test-share: OF_SHARE = --share $(SHARE)/$(SHARES)

# All tests, most in one run: each process takes half a minute to collect them.
test-all test-share: rest-needs
	$(PYTEST) $(PARALLEL) $(IN_ORDER) -m "not (alone or audio)$(NOT_SYSTEMD)"
	$(call AUDIO,)
	$(ALONE)

# An environment of the oldest versions that pyproject.toml allows, and any of what the tests alone need.
OLDEST = $(VENV)-oldest
EXTRAS = cloud,dask,fast,mqtt,netcdf,parquet,pdf,plot,web,xarray,zarr

$(OLDEST)/.installed: pyproject.toml $(VENV)/.uv
	rm -rf $(OLDEST)
	$(BIN)/uv venv --quiet --python $(BIN)/python $(OLDEST)
	$(UV) --python $(OLDEST) --resolution lowest-direct --editable '.[$(EXTRAS)]'
	$(BIN)/uv pip freeze --python $(OLDEST) --exclude-editable >$(OLDEST)/versions.txt
	$(UV) --python $(OLDEST) --constraint $(OLDEST)/versions.txt --group test
	@touch $@

test-oldest: $(OLDEST)/.installed
	@scripts/packages $(TEST_PACKAGES)
	$(OLDEST)/bin/python -m pytest $(or $(ARGS),$(PARALLEL) tests/unit -m "not ($(REST)) and not audio")

# Nothing of a release is taken from this machine but its network: the environment is made there.
RELEASES = bookworm trixie sid
test-releases: release-needs
	@failed=; for release in $(RELEASES); do \
	    scripts/test-release $$release $(or $(ARGS),$(PARALLEL) tests/unit -m "not ($(REST)) and not audio") \
	        || failed="$$failed $$release"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

# What Raspberry Pi OS is made from. The emulator takes some twenty times as long.
NUMPY_PATH = $(addprefix tests/unit/,dsp analysis measure wire) tests/contract/test_engine_contract.py
test-arm64: release-needs $(VENV)/.uv
	@scripts/packages qemu-user-static binfmt-support
	@update-binfmts --enable qemu-aarch64
	UV=$(BIN)/uv scripts/test-release trixie/arm64 $(or $(ARGS),--timeout 1200 $(NUMPY_PATH) -m "not ($(REST)) and not audio and not opencl")

release-needs:
	@scripts/packages debootstrap git

# Prometheus's tool alone (48 MB of the package's 96 MB), without the server that its package starts. Where
# there is no such package, the tests of the alert rules are left out, and say so.
$(BIN)/promtool: $(VENV)/.pip
	@cd $(VENV) && rm -f prometheus_*.deb && { apt-get download -qq prometheus \
	    && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xO ./usr/bin/promtool >.promtool \
	    && chmod +x .promtool && mv .promtool bin/promtool; } 2>/dev/null \
	    || echo "no promtool: the alert rules are not tested" >&2; rm -f prometheus_*.deb .promtool

# docs/soak.md says what it does and checks.
HOURS ?= 1
SEED ?= 1
soak: $(VENV)/.group-test
	@scripts/packages $(TEST_PACKAGES)
	@$(BIN)/python -m spectrod.apps.bench.fault_soak --hours $(HOURS) --seed $(SEED) $(if $(JSON),--json $(JSON))

test-needs: $(VENV)/.group-test examples/node_modules/.installed test-packages

test-packages:
	@scripts/packages $(TEST_PACKAGES) $(if $(ROOT),$(SYSTEMD_PACKAGES))

rest-needs: test-needs $(VENV)/.group-reference $(BIN)/promtool tests/browser/node_modules/.installed
	@$(if $(ROOT),,echo "not root: the tests under a real systemd are left out")

# The tests start a thousand programs; without its cache Python would compile their modules each time.
unexport PYTHONDONTWRITEBYTECODE
PYTEST = @$(BIN)/python -m pytest $(OF_SHARE) $(if $(ROOT),,-m "not systemd")
# The tests of a file on a device stay in one process: they share fixtures, and two processes that compile
# the same kernel at once do so twice. Three on two cores: many tests wait. A process that ends early ends the run
# with a report: in a new one the rest of its file would crash again, and pytest-xdist may hang.
PARALLEL = --numprocesses 3 --dist loadfile --max-worker-restart 0
# The markers of what takes long beside what it adds: pyproject.toml says what they are.
REST = every_driver or every_form or extended or systemd or alone
NOT_SYSTEMD = $(if $(ROOT),, and not systemd)
# As tests/conftest.py orders the files: pytest-xdist would run those of few tests last, which take the longest here.
IN_ORDER = --no-loadscope-reorder
# Only the files that have such tests are collected.
FILES_WITH = $$(grep -rl --include='test_*.py' 'pytest\.mark\.$(1)' tests | sort)
# A sound server keeps real time, and the tests ask for its losses to a block. They mostly wait, so they run beside one
# another, and not beside tests that compile, which take the cores from the server.
AUDIO = $(PYTEST) --numprocesses 3 --max-worker-restart 0 -m "$(1)audio and not alone$(NOT_SYSTEMD)" $(call FILES_WITH,audio)
ALONE = $(PYTEST) -m "alone$(NOT_SYSTEMD)" $(call FILES_WITH,alone)

lint: $(VENV)/.group-lint
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/clang-format --dry-run --Werror kernels/*.cl kernels/*.clh kernels/baselines/*.cl

types: $(VENV)/.group-lint
	$(BIN)/mypy
	$(BIN)/mypy tests/types/user_script.py

imports: $(VENV)/.group-lint
	$(BIN)/lint-imports

check: lint types imports test

# --- the documentation

docs: $(VENV)/.group-docs
	$(BIN)/python scripts/site_pages.py build/site_pages
	$(BIN)/zensical build --clean --strict
	@echo "site/index.html"

pictures: $(VENV)/.group-test
	@scripts/packages espeak-ng chromium tmux fontconfig
	$(BIN)/python scripts/pictures.py

# --- the service

install: $(if $(DESTDIR),,install-program) install-files
	@$(if $(DESTDIR),,$(SYSTEMD_RUNS) || exit 0; $(MAKE_USER); systemctl daemon-reload; $(NAME_RUNNING))

SYSTEMD_RUNS = [ -d /run/systemd/system ]
# A restart ends recordings and streams: the operator chooses its time.
NAME_RUNNING = units=$$(systemctl list-units --plain --no-legend --full --state=active \
    'spectrod.service' 'spectrod@*.service' spectrod-mqtt.service spectrod-upload.service spectrod-web.service | cut -d' ' -f1 | xargs); \
    [ -z "$$units" ] || echo "what ran before goes on until: systemctl restart $$units"
# A running service of an earlier version has a dynamic user of this name, which must not count.
MAKE_USER = SYSTEMD_NSS_DYNAMIC_BYPASS=1 systemd-sysusers spectrod.conf
# RestartSteps= is of this version.
KNOWS_STEPS = [ "$$(systemctl --version 2>/dev/null | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -ge 254 ] 2>/dev/null
LINK = $(DESTDIR)$(BINDIR)/spectrod
IS_LINKED = [ "$$(readlink $(LINK))" = $(PREFIX)/bin/spectrod ]
RESTART_STEPS = $(addprefix $(UNITDIR)/,$(addsuffix .service.d/50-restart.conf,spectrod spectrod@))
PLACES = sed 's|/opt/spectrod|$(PREFIX)|g; s|/etc/spectrod|$(CONFDIR)|g'

# Where it computes, the copy of PoCL in pyopencl's wheel would only take memory beside it.
SYSTEM_POCL = /etc/OpenCL/vendors/pocl.icd

.PHONY: install-program install-files
install-program:
	@[ -e $(PREFIX)/pyvenv.cfg ] || [ -z "$$(ls -A $(PREFIX) 2>/dev/null)" ] \
	    || { echo "PREFIX=$(PREFIX): must be a folder of spectrod's own, new or empty" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || scripts/packages python3-venv
	@scripts/packages libportaudio2 || echo "without PortAudio there is no sound card" >&2
	$(PYTHON) -m venv $(PREFIX)
	$(PREFIX)/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes \
	    --requirement packaging/requirements.lock
	$(PREFIX)/bin/python -m pip --quiet --disable-pip-version-check install --upgrade --no-deps .
	@$(PREFIX)/bin/$(OPENS_OPENCL) >/dev/null 2>&1 || scripts/packages pocl-opencl-icd \
	    || echo "without an OpenCL driver that works, NumPy computes" >&2
	@[ ! -e $(SYSTEM_POCL) ] || ! OCL_ICD_VENDORS=$(SYSTEM_POCL) $(PREFIX)/bin/$(OPENS_OPENCL) >/dev/null 2>&1 \
	    || $(PREFIX)/bin/python -m pip --quiet --disable-pip-version-check uninstall --yes pocl-binary-distribution
	@[ ! -d $(COMPLETIONDIR) ] \
	    || $(PREFIX)/bin/spectrod completion bash >$(COMPLETIONDIR)/spectrod

install-files:
	install -d $(addprefix $(DESTDIR),$(UNITDIR) $(USERUNITDIR) $(SYSUSERSDIR) $(CONFDIR) $(PREFIX)/share/spectrod)
	for unit in spectrod.service spectrod-mqtt.service spectrod-upload.service spectrod-web.service; do \
	    $(PLACES) systemd/$$unit >$(DESTDIR)$(UNITDIR)/$$unit; done
	sed -f systemd/instance.sed systemd/spectrod.service | $(PLACES) >$(DESTDIR)$(UNITDIR)/spectrod@.service
	$(PLACES) systemd/user/spectrod.service >$(DESTDIR)$(USERUNITDIR)/spectrod.service
	install -m 644 systemd/sysusers.conf $(DESTDIR)$(SYSUSERSDIR)/spectrod.conf
	install -m 644 systemd/spectrod.service.d/*.conf systemd/spectrod.toml \
	    $(addprefix docs/,operations.md control.md monitoring.md recorder.md security.md service.md mqtt.md upload.md web.md) \
	    examples/prometheus/spectrod.rules.yml examples/grafana/spectrod.json $(DESTDIR)$(PREFIX)/share/spectrod
	@[ -e $(DESTDIR)$(CONFDIR)/spectrod.toml ] \
	    || install -m 644 systemd/spectrod.toml $(DESTDIR)$(CONFDIR)
	@! $(KNOWS_STEPS) \
	    || for steps in $(RESTART_STEPS); do \
	        install -D -m 644 systemd/spectrod.service.d/50-restart.conf $(DESTDIR)$$steps; done
	@if [ -e $(LINK) ] || [ -L $(LINK) ]; then \
	    $(IS_LINKED) || echo "$(LINK): is another program, and stays" >&2; \
	else install -d $(dir $(LINK)); ln -s $(PREFIX)/bin/spectrod $(LINK); fi

uninstall:
	@[ -x $(PREFIX)/bin/spectrod ] && [ -e $(PREFIX)/pyvenv.cfg ] \
	    || { echo "PREFIX=$(PREFIX): holds no spectrod that make installed" >&2; exit 1; }
	@$(SYSTEMD_RUNS) || exit 0; systemctl disable --now spectrod.service spectrod-mqtt.service spectrod-upload.service spectrod-web.service; \
	    systemctl stop 'spectrod@*.service'; systemctl disable --quiet spectrod@.service
	@! $(IS_LINKED) || rm -f $(LINK)
	rm -rf $(addprefix $(UNITDIR)/,spectrod.service spectrod@.service spectrod-mqtt.service spectrod-upload.service spectrod-web.service) $(RESTART_STEPS) \
	    $(USERUNITDIR)/spectrod.service \
	    $(SYSUSERSDIR)/spectrod.conf $(PREFIX) \
	    $(COMPLETIONDIR)/spectrod
	@$(SYSTEMD_RUNS) || exit 0; systemctl daemon-reload
	@echo "kept: user and group spectrod, $(CONFDIR), /var/lib/spectrod, /var/cache/spectrod, /var/log/spectrod"

# The versions that `install` and the Debian package take, with the hashes of their files.
lock: $(VENV)/.uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --custom-compile-command 'make lock' --extra mqtt --extra fast --extra netcdf --extra web \
	    --output-file packaging/requirements.lock $(LOCK) pyproject.toml

# Into dist/. dpkg-buildpackage wants a folder of its own, with debian/ at its top.
deb:
	@scripts/packages build-essential debhelper dpkg-dev fakeroot python3-venv systemd
	rm -rf build/deb && mkdir -p build/deb dist
	git ls-files -z | xargs -0 cp --parents --target-directory build/deb
	mv build/deb/packaging/debian build/deb/debian
	cd build/deb && dpkg-buildpackage --build=binary --no-sign
	mv build/spectrod_*.deb dist/
	rm -rf build

# localhost/spectrod; BUILDARGS goes to buildah.
container:
	@scripts/packages buildah
	buildah build --file packaging/Containerfile --tag spectrod $(BUILDARGS) .

clean:
	rm -rf $(VENV) $(OLDEST) examples/node_modules tests/browser/node_modules build dist site .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find spectrod tests benchmarks examples scripts -name __pycache__ -type d -prune -exec rm -rf {} +
