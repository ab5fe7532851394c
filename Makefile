GO      ?= go
LINT    := $(GO) tool -modfile=tools/lint/go.mod
FUZZ    ?= 10s

.PHONY: dev build test unit temporal lint vuln bench fuzz

dev: ## Temporal dev server, worker and MCP front end with the demo tools
	$(GO) build -o bin/taskbridge ./cmd/taskbridge
	@exec bin/taskbridge dev

build: ## bin/taskbridge
	$(GO) build -o bin/taskbridge ./cmd/taskbridge

test: lint vuln unit ## everything that has to pass; needs Go, git and npm

unit: temporal ## all tests with the race detector
	$(GO) test -race -timeout 40m ./...

temporal: ## the Temporal dev server; the first build takes 6 to 9 minutes on 2 cores
	$(GO) run ./internal/devserver/prebuild

lint: ## gofmt, go vet, golangci-lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	$(LINT) golangci-lint run

vuln: ## known vulnerabilities, where their database can be reached
	@.ci/vulncheck $(LINT) govulncheck ./...

bench: ## ratios against raw Temporal and bare Echo, in one run
	$(GO) run ./bench

fuzz: ## each fuzz test for a while
	$(GO) test -fuzz FuzzDecode -fuzztime $(FUZZ) ./mcpbridge/internal/rpc
	$(GO) test -fuzz FuzzParse -fuzztime $(FUZZ) ./mcpbridge/catalog
