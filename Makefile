# Two commands for a newcomer: `make paper` and `make test`. Both set up what is missing first.
# `make test-cluster` starts a Slurm of one node and runs the DAG on it, with faults (as root, on Debian).
# `make test-groot` runs GR00T's own classes on the CPU with a tiny checkpoint, in an environment of its own.
# `make docs` builds the documentation as a site, site/html; a warning is an error.
# `make bench` measures speed beside the alternatives, in about a quarter of an hour, on a machine without other work.
# `make study` runs the closed-loop study, in two to three hours; it goes on where it was stopped (docs/closed-loop.md).
# `make clean` removes what the pipeline made (not the environments, .venv*).
.PHONY: paper test test-cluster test-groot docs bench study clean tex screens
MAKEFLAGS += --no-print-directory -j2

PYTHON ?= python3.11
export PATH := $(CURDIR)/.venv/bin:$(PATH)
TEX := texlive-latex-extra texlive-publishers texlive-science texlive-pictures latexmk
OPENGL := libegl1 libgl1 libgl1-mesa-dri libosmesa6
TEX_HINT := apt-get install --no-install-recommends $(TEX)

paper: .venv/ready tex
	snakemake all
	@python -m ghost.report.tex && echo "report: paper/ghost.pdf, with paper/ghost_supplement.pdf" || echo "no PDF: there is no TeX here; $(TEX_HINT)"
	@echo "audit:  data/laptop/audit.html"

test: .venv/ready .venv-docs/ready .venv-crate/ready tex screens
	codespell
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow
	mypy
	OMP_NUM_THREADS=1 pytest -n 2

test-cluster: .venv/ready tex
	pytest -m cluster

test-groot: .venv/ready .venv-groot/ready
	CUDA_VISIBLE_DEVICES= .venv-groot/bin/python -m pytest -m groot tests/groot

docs: .venv-docs/ready
	$(PYTHON) docs/site_source.py site/source
	.venv-docs/bin/zensical build --strict --clean
	@echo "site: site/html/index.html"

bench: .venv/ready tex screens
	snakemake bench

study: .venv/ready
	-snakemake study --keep-going --config scale=closed_loop_choice # a rate that is too high fails
	ghost choose
	snakemake study --config scale=closed_loop
	snakemake study --config scale=closed_loop_easy

clean:
	rm -rf .snakemake/metadata .snakemake/incomplete logs data/smoke data/laptop/runs data/laptop/units data/laptop/cells \
	    data/laptop/metrics data/laptop/*.* data/trial figures/*.* paper/generated paper/*.pdf site

# Pinned packages, in a virtual environment of the project's own.
PIP_INSTALL := pip install -qq --disable-pip-version-check --no-deps
INSTALL := workflow/envs/install.sh
.venv/ready: requirements.lock workflow/envs/cuda.lock pyproject.toml
	@command -v $(PYTHON) > /dev/null || { echo "no $(PYTHON) here; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@PYTHONPATH=src $(PYTHON) -m ghost.project.place
	@echo "setting up .venv from requirements.lock (about two minutes)"
	@$(PYTHON) -m venv .venv || { echo "no venv in $(PYTHON): apt-get install python3.11-venv"; exit 1; }
	@bash $(INSTALL) .venv requirements.lock workflow/envs/cuda.lock
	@.venv/bin/$(PIP_INSTALL) --no-build-isolation -e .
	@touch $@

# GR00T's packages, which do not agree with ours. `ghost` itself is taken from src/.
GROOT_LOCK ?= workflow/envs/$(if $(shell command -v nvidia-smi 2> /dev/null),groot.lock,groot-cpu.lock)
.venv-groot/ready: $(GROOT_LOCK) workflow/envs/cuda.lock
	@echo "setting up .venv-groot from $(GROOT_LOCK) (about two minutes)"
	@$(PYTHON) -m venv .venv-groot || { echo "no venv in $(PYTHON): apt-get install python3.11-venv"; exit 1; }
	@bash $(INSTALL) .venv-groot $(GROOT_LOCK) $(if $(findstring -cpu,$(GROOT_LOCK)),workflow/envs/cuda.lock)
	@echo "$$PWD/src" > "$$(.venv-groot/bin/python -c 'import site; print(site.getsitepackages()[0])')/ghost.pth"
	@touch $@

# The generator of the documentation site, which nothing else uses.
.venv-docs/ready: docs/requirements.txt
	@$(PYTHON) -m venv .venv-docs || { echo "no venv in $(PYTHON): apt-get install python3.11-venv"; exit 1; }
	@.venv-docs/bin/$(PIP_INSTALL) -r docs/requirements.txt
	@touch $@

# The validator of RO-Crates, which does not agree with our packages.
.venv-crate/ready: workflow/envs/crate.lock
	@$(PYTHON) -m venv .venv-crate || { echo "no venv in $(PYTHON): apt-get install python3.11-venv"; exit 1; }
	@.venv-crate/bin/$(PIP_INSTALL) --require-hashes -r $<
	@touch $@

# $(call apt,what,packages): install packages of Debian's, if we may.
apt = if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
        echo "installing $(1)"; \
        said=$$(apt-get update -qq 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
            -o DPkg::Lock::Timeout=300 --no-install-recommends $(2) 2>&1) \
            || echo "$(1) could not be installed: $$(echo "$$said" | tail -n 1)"; \
    fi

# TeX, if it is missing. Without it all but the PDF is built.
tex:
	@command -v latexmk > /dev/null || { $(call apt,TeX (about two minutes),$(TEX)); }
	@command -v latexmk > /dev/null || PYTHONPATH=src $(PYTHON) -m ghost.report.tex \
	    || echo "no TeX here: all but the PDF will be built; $(TEX_HINT), or a TeX Live in your home (docs/systems.md)"

# What tests look at pages and simulated scenes with: a browser, and OpenGL without a GPU. Tests without them are
# skipped, and named at the end. After tex, since only one apt-get can run at a time.
screens: tex
	@command -v chromium > /dev/null || command -v google-chrome > /dev/null || { $(call apt,chromium,chromium); }
	@ls /usr/lib/*/libOSMesa.so.* /usr/lib/*/libEGL.so.* > /dev/null 2>&1 || { $(call apt,OpenGL,$(OPENGL)); }
