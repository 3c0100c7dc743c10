# The pipeline's environment: Debian 12 with TeX, software OpenGL and the packages of requirements.lock. It has no code:
# run it in a checkout, `docker run --rm -it -v "$PWD:/ghost" ghost snakemake all`. Apptainer: workflow/envs/ghost.def.
FROM debian:12-slim

ENV LANG=C.UTF-8 \
    PATH=/opt/ghost/bin:$PATH \
    PYTHONPATH=/ghost/src
WORKDIR /ghost
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]

COPY Makefile requirements.lock workflow/envs/cuda.lock workflow/envs/image.sh workflow/envs/install.sh /opt/build/
# For machines without a GPU: PyTorch's index of CPU builds, with --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL=
RUN bash /opt/build/image.sh /opt/build

CMD ["bash"]
