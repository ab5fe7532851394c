FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY activities activities
COPY cmd cmd
COPY examples examples
COPY internal internal
COPY mcpbridge mcpbridge
COPY signals signals
COPY workflows workflows
RUN CGO_ENABLED=0 go build -o /taskbridge ./cmd/taskbridge

# Pipelines run the programs that are in the worker's image. Add yours, or copy the binary into an image that has them.
FROM debian:stable-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home taskbridge
COPY --from=build /taskbridge /usr/local/bin/taskbridge
COPY examples/demo/catalog.yaml /etc/taskbridge/catalog.yaml
USER taskbridge
WORKDIR /home/taskbridge
ENTRYPOINT ["taskbridge"]
