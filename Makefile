# Two commands for a newcomer: `make paper` and `make test`. Both set up what is missing first.
# `make test-cluster` starts a Slurm of one node and runs the DAG on it, with faults (as root, on Debian).
# `make clean` removes what the pipeline made (not .venv).
.PHONY: paper test test-cluster clean tex
MAKEFLAGS += --no-print-directory -j2

PYTHON ?= python3.11
BIN := $(CURDIR)/.venv/bin
export PATH := $(BIN):$(PATH)
TEX := texlive-latex-extra texlive-publishers texlive-science texlive-pictures latexmk
TEX_HINT := apt-get install --no-install-recommends $(TEX)

paper: .venv/ready tex
	snakemake all
	@command -v latexmk > /dev/null && echo "report: paper/ghost.pdf" || echo "no PDF: there is no TeX here; $(TEX_HINT)"
	@echo "audit:  data/laptop/audit.html"

test: .venv/ready tex
	ruff check
	ruff format --check
	snakefmt --check Snakefile workflow
	mypy
	pytest -n 2 --dist loadgroup

test-cluster: .venv/ready tex
	pytest -m cluster -rs

clean:
	rm -rf .snakemake/metadata .snakemake/incomplete logs data/smoke data/laptop/runs data/laptop/cells data/laptop/*.* \
	    figures/*.* paper/generated paper/ghost.pdf

# Pinned packages, in a virtual environment of the project's own. The lock is complete, hence --no-deps: hf-libero asks
# for versions of numpy and robosuite's kin that exclude each other, and uses nothing of the difference.
.venv/ready: requirements.lock pyproject.toml
	@command -v $(PYTHON) > /dev/null || { echo "no $(PYTHON) here; name one: make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up .venv from requirements.lock (about three minutes)"
	@$(PYTHON) -m venv .venv || { echo "no venv in $(PYTHON): apt-get install python3.11-venv"; exit 1; }
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps -r requirements.lock
	@$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# TeX from Debian's packages, if it is missing and we may install it. Without it all but the PDF is built.
tex:
	@command -v latexmk > /dev/null || { \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	        echo "installing TeX (about two minutes)"; \
	        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(TEX) \
	            > /dev/null 2>&1 || echo "TeX could not be installed"; \
	    fi; }
