#!/usr/bin/env bash
# What an image has, on a bare Debian 12, as root: TeX, OpenGL and the locked packages in /opt/ghost. Dockerfile and
# ghost.def call it with the folder of Makefile, which lists Debian's packages, and of install.sh with the locks.
set -euo pipefail
folder=$1
packages=$(sed -n 's/^\(TEX\|OPENGL\) := //p' "$folder/Makefile")

export DEBIAN_FRONTEND=noninteractive PIP_NO_CACHE_DIR=1
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends ca-certificates git make openssh-client python3.11-venv $packages
rm -rf /var/lib/apt/lists/*

python3.11 -m venv /opt/ghost
bash "$folder/install.sh" /opt/ghost "$folder/requirements.lock" "$folder/cuda.lock"
printf '#!/opt/ghost/bin/python\nfrom ghost.cli import main\n\nmain()\n' > /opt/ghost/bin/ghost
chmod +x /opt/ghost/bin/ghost
git config --system safe.directory /ghost # the checkout there belongs to another user
