# The image that `enbloc install` runs: docker build -t enbloc:0.1.0 .
#
# Packages are pinned and checked by hash. Nothing of what builds them is in the image; it runs as an ordinary user and
# writes to no disk.
ARG PYTHON=python:3.13-slim

FROM ${PYTHON} AS build
WORKDIR /src
RUN python -m venv /opt/enbloc
COPY requirements/image.txt requirements/
RUN /opt/enbloc/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/image.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/enbloc/bin/pip install --no-cache-dir --disable-pip-version-check --no-build-isolation --no-deps . \
    && /opt/enbloc/bin/pip uninstall --yes hatchling packaging pathspec pluggy tomlkit trove-classifiers pip

FROM ${PYTHON}
COPY --from=build /opt/enbloc /opt/enbloc
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
ENTRYPOINT ["/opt/enbloc/bin/enbloc"]
CMD ["--help"]
