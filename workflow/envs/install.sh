#!/usr/bin/env bash
# install.sh VENV LOCK [CUDA_LOCK]: puts the packages of LOCK into VENV. Each is checked against its hash. The lock is
# complete, hence --no-deps. uv does it where it is there, and two pips side by side where not. A lock without CUDA_LOCK is
# for GPUs: it has CUDA's libraries itself.
set -euo pipefail
venv=$1 lock=$2 cuda_lock=${3:-}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
pip=("$venv/bin/pip" install -qq --disable-pip-version-check --no-deps --require-hashes)
uv=(uv pip install -q --python "$venv/bin/python" --no-deps --require-hashes)
grep '^torch==' "$lock" > "$parts/torch" || true
grep -v '^torch==\|^#' "$lock" | split -l 40 - "$parts/part-"

# torch by pip, whose settings say where this machine has its builds (an index, a folder). Without a GPU a build without
# CUDA is asked for first; uv knows PyTorch's own index of them.
install_torch() {
    if [ -n "$cuda_lock" ] && ! command -v nvidia-smi > /dev/null; then
        sed 's/^torch==[^ ]*/&+cpu/' "$parts/torch" > "$parts/torch-cpu"
        said=$("${pip[@]}" -r "$parts/torch-cpu" 2>&1) && return
        [[ $said == *"No matching distribution"* ]] || { echo "$said" >&2 && return 1; }
        command -v uv > /dev/null && "${uv[@]}" --torch-backend=cpu -r "$parts/torch-cpu" && return
    fi
    sed 's/^torch==/torch===/' "$parts/torch" > "$parts/torch-cuda" # not 2.13.0+cpu, should there be one
    "${pip[@]}" -r "$parts/torch-cuda"
}

install_torch &
failed=
if command -v uv > /dev/null; then
    cat "$parts"/part-* > "$parts/all"
    "${uv[@]}" -r "$parts/all" || failed=yes
else
    echo "$parts"/part-* | xargs -P 2 -n 1 "${pip[@]}" -r || failed=yes
fi
wait $! || failed=yes
[ -z "$failed" ]

# On Linux the builds of the usual index have CUDA, and need its libraries. Others have a tag: 2.13.0+cpu.
torch=$(ls -d "$venv"/lib/python3*/site-packages/torch-*.dist-info 2> /dev/null || true)
if [ -n "$cuda_lock" ] && [ -n "$torch" ] && [[ $torch != *+* ]] && [ "$(uname)" = Linux ]; then
    echo "this torch has CUDA: installing its libraries (gigabytes; docs/systems.md says how to do without)"
    "${pip[@]}" -r "$cuda_lock"
fi
