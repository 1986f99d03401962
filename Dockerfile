# SPDX-License-Identifier: Apache-2.0
# NVIDIA's Triton server with the router's backend and hooks. It serves the model repository mounted at /models.
#   docker build --tag triton-priority-router .
# The base may be any -py3 image from 24.11 on: --build-arg TRITON_IMAGE=nvcr.io/nvidia/tritonserver:25.01-py3
ARG TRITON_IMAGE=nvcr.io/nvidia/tritonserver:24.12-py3

# On the same base, so that the hooks are linked against the C library that they will meet.
FROM ${TRITON_IMAGE} AS build
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
COPY backends /source/backends
COPY deploy/image /source/image
WORKDIR /source/backends/priority_router
RUN python3 -m priority_router.ops.build_hooks \
    && python3 -m priority_router.ops.cli install /image/backends \
    && install --mode=755 /source/image/priority-router /image/priority-router

FROM ${TRITON_IMAGE}
COPY --from=build /image/backends/priority_router /opt/tritonserver/backends/priority_router
COPY --from=build /image/priority-router /usr/local/bin/priority-router
# The user that the base makes for this; by number, so that an orchestrator sees that it is not root.
USER 1000:1000
EXPOSE 8000 8001 8002
# Asks as the policy's default class: where that class has a backlog, name an urgent one with --class instead.
HEALTHCHECK --interval=15s --timeout=10s --start-period=10m --retries=3 \
    CMD ["priority-router", "probe", "--timeout", "8"]
# The base's own entry point first: it fits CUDA to the driver, and becomes the command.
ENTRYPOINT ["/opt/nvidia/nvidia_entrypoint.sh", \
    "priority-router", "serve", "--host=0.0.0.0", "--model-repository=/models"]
