# Tandem from a wheel in dist/ (.ci/release makes one): `docker build -t tandem .`, `docker run --rm tandem demo`. For GPUs add
# `--gpus all`; for files of yours, `--volume "$PWD:/work"`.
FROM python:3.12-slim-bookworm
COPY dist/tandem_lab-*.whl /tmp/
RUN pip install --no-cache-dir --no-index /tmp/tandem_lab-*.whl && rm /tmp/tandem_lab-*.whl
# The driver's libraries come from the host.
ENV NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
ENTRYPOINT ["tandem"]
CMD ["--help"]
