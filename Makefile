# Every target works on a fresh clone with only Go, unless its help says otherwise. `make help` lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

KUBERNETES := v1.36.3
# Releases, tests and CI use the compiler of the toolchain line in go.mod, regardless of the installed Go.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)+auto
LAB_LDFLAGS := -X k8s.io/component-base/version.gitVersion=$(KUBERNETES)
# -p 1 runs one test binary at a time, because it shares two cores with a control plane. -p 1 also compiles one package at a time, so e2e builds bin/lab first.
LAB_TEST := go -C lab test -ldflags '$(LAB_LDFLAGS)' -timeout 60m -p 1 -parallel 2
LINT := go tool -modfile=hack/lint/go.mod golangci-lint

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: bin/joiner bin/lab ## start the lab and run the demo: pods go from Pending to Running on launched nodes (KEEP=1: keep the lab running)
	@bin/lab demo --joiner bin/joiner $(if $(filter-out 0 no false,$(KEEP)),--keep)

.PHONY: bin/joiner bin/lab bin/bench bin/helm bin/release
bin/joiner:
	@mkdir -p bin && hack/build bin/joiner . ./cmd/joiner
bin/bench:
	@mkdir -p bin && hack/build bin/bench bench ./cmd/bench
bin/helm:
	@mkdir -p bin && hack/build bin/helm hack/tools helm.sh/helm/v4/cmd/helm
bin/release:
	@mkdir -p bin && hack/build bin/release hack/release .
bin/lab:
	@mkdir -p bin && hack/build bin/lab lab ./cmd/lab -ldflags '$(LAB_LDFLAGS)'

.PHONY: test
test: unit e2e ## all tests: unit tests, then end-to-end tests in the lab

.PHONY: unit
unit: ## unit tests, which need no control plane
	@# Random cases use the same seed in every run, so a failure is reproducible. `make explore` uses other seeds.
	@RAPID_SEED=$${RAPID_SEED:-1} hack/step 'unit tests' go test -timeout 20m ./...

.PHONY: explore
explore: ## tests with random cases, each with CHECKS (default 2000) new cases (an hour)
	@RAPID_SEED=0 RAPID_CHECKS=$(or $(CHECKS),2000) hack/step 'explore' go test -count=1 -timeout 4h \
		$$(git grep -l --name-only 'rapid\.Check(' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: e2e
e2e: bin/joiner bin/lab bin/helm ## end-to-end tests in the lab: a real control plane, an emulated AWS
	@HELM_BINARY=$(CURDIR)/bin/helm JOINER_BINARY=$(CURDIR)/bin/joiner hack/step 'lab tests' $(LAB_TEST) ./...

.PHONY: diagnosis-report
diagnosis-report: bin/joiner bin/lab ## inject every fault of the lab and run joiner doctor, to docs/diagnosis-report.md (30 minutes; needs kubectl and aws)
	@bin/lab diagnosis-report --joiner bin/joiner --pairs 50 -o docs/diagnosis-report.md

.PHONY: sizing
sizing: bin/joiner bin/lab ## CPU and memory of the controller for 100 to 2,000 nodes, to docs/sizes.md (20 minutes; needs an idle computer with 12 GB)
	@hack/step 'sizing' bin/lab sizing --joiner bin/joiner --nodes 100,500,1000,2000 -o docs/sizes.md

.PHONY: soak
soak: bin/joiner bin/lab ## the lab tests at full size: 500 drains, 1,000 nodes for 10,000 pods, 400 pods of a hostile tenant, faults for their full duration (an hour)
	@LAB_DRAINS=500 LAB_NODES=1000 LAB_LOOSE=200 LAB_HOSTILE=400 LAB_ORDINARY=20 JOINER_BINARY=$(CURDIR)/bin/joiner hack/step 'soak' \
		$(LAB_TEST) -timeout 90m -run '^(TestDrains|TestThousandNodes|TestConsolidation|TestHostileTenant)$$' -v .
	@LAB_FULL=1 LAB_OUTAGE=1m JOINER_BINARY=$(CURDIR)/bin/joiner hack/step 'faults' $(LAB_TEST) -timeout 45m -run '^(TestFaultsOfAWS|TestAPIServerGone)$$' -v .

.PHONY: bin/karpenter
bin/karpenter:
	@mkdir -p bin && hack/build bin/karpenter hack/karpenter github.com/aws/karpenter-provider-aws/cmd/controller

.PHONY: bench-live
bench-live: bin/joiner bin/lab bin/karpenter ## Joiner and Karpenter's own controller in the lab: prices, waiting times and evictions, to docs/benchmarks/live.md (SEEDS, SCRIPTS; PARALLEL: runs at the same time, default 1; about a day)
	@bin/lab live --joiner bin/joiner --karpenter bin/karpenter --vary --seeds $(or $(SEEDS),101,102,103,104,105,106,107,108,109,110,111,112) --scripts $(or $(SCRIPTS),scale,roll,waves,slow,reclaim,price,drift) --parallel $(or $(PARALLEL),1) --keep bin/live -o docs/benchmarks/live.md

.PHONY: race
race: ## parallel code of decisions under the race detector (needs a C compiler)
	@command -v $${CC:-cc} >/dev/null || { echo "no C compiler: the race detector is left out"; exit 0; }; \
		CGO_ENABLED=1 hack/step 'race detector' go test -race -run 'Scenarios|SideBySide|Each|Later|Panics' ./internal/scheduling/parallel ./internal/scheduling/lowerbound ./internal/scheduling/packing

.PHONY: bench
bench: bin/joiner bin/bench ## benchmarks: comparison with Karpenter, to docs/benchmarks.md (20 minutes); the solver; the lab with 500 pods (needs an idle computer)
	@bin/bench -o docs/benchmarks.md
	@go test -run '^$$' -bench . -benchmem ./internal/scheduling/packing/...
	@LAB_TIMED=1 JOINER_BINARY=$(CURDIR)/bin/joiner $(LAB_TEST) -run '^TestFiveHundredPods$$' -v .

.PHONY: crash
crash: bin/joiner bin/lab ## kill the controller after every write in a node's life: with simulated time, then in the lab (10 minutes)
	@CRASH_FULL=1 hack/step 'crash' go test -run '^TestCrashAtEveryWrite$$' ./internal/controller
	@CRASH_FULL=1 JOINER_BINARY=$(CURDIR)/bin/joiner hack/step 'crash in the lab' $(LAB_TEST) -run '^TestKilledAfterEveryWrite$$' -v .

.PHONY: conformance
conformance: ## tests of bench/: the benchmarks, and Joiner's CRDs against Karpenter's
	@hack/step 'conformance' go -C bench test ./...

.PHONY: deploy
deploy: ## tests of deploy/: plans of Terraform and CloudFormation, policies, event rules and examples
	@# -count=1, because the test cache ignores changed files outside of the module.
	@hack/step 'deploy' go -C hack/deploy test -count=1 ./...
	@command -v terraform >/dev/null || { echo "terraform is not installed: its fmt is left out"; exit 0; }; \
		hack/step 'terraform fmt' terraform fmt -check -recursive deploy/terraform

.PHONY: chart
chart: bin/helm ## lint the Helm chart and render it with each values file of deploy/charts/testdata (REWRITE=1: update the golden files)
	@HELM_BINARY=$(CURDIR)/bin/helm hack/step 'chart' go test ./deploy/charts $(if $(REWRITE),-rewrite)

.PHONY: ship
ship: ## tests of published files: dashboard and alerts with real metrics, krew manifest, workflows, image build
	@hack/step 'release' go -C hack/release test ./...
	@hack/step 'dashboards' go -C hack/dashboards test ./...

.PHONY: vuln
vuln: bin/joiner bin/lab bin/release ## known vulnerabilities: fails when a vulnerable function is linked (SOURCE=1: show the calls, takes minutes; VULNDB=https://vuln.go.dev: live database)
	@hack/step 'vulnerabilities' go -C hack/vuln run . bin/joiner bin/lab bin/release
	@[ -z "$(filter-out 0 no false,$(SOURCE))" ] || hack/step 'vulnerable calls' go -C hack/vuln run . -source . ./cmd/joiner
	@hack/step 'vuln test' go -C hack/vuln test ./...

.PHONY: image
image: ## build the container image for both architectures twice, to dist/image; both builds must have the same digest (10 minutes the first time)
	@hack/step 'image' go -C hack/release run . -o dist -only image -twice

.PHONY: lint
lint: ## gofmt, vet, linters
	@hack/step 'gofmt' bash -c 'out=$$(gofmt -l $$(git ls-files "*.go")); [ -z "$$out" ] || { echo "gofmt -w these:" $$out; exit 1; }'
	@hack/step 'vet' go vet ./...
	@hack/step 'vet lab' go -C lab vet ./...
	@hack/step 'golangci-lint' $(LINT) run ./...
	@hack/step 'golangci-lint lab' bash -c 'cd lab && go tool -modfile=../hack/lint/go.mod golangci-lint run --config ../.golangci.yml ./...'
	@hack/step 'golangci-lint bench' bash -c 'cd bench && go tool -modfile=../hack/lint/go.mod golangci-lint run --config ../.golangci.yml ./...'

.PHONY: gen
gen: ## generate deep copies and CRDs
	@go generate ./api/...

.PHONY: check
check: ## all checks of CI: up-to-date generated files, lint, conformance, all tests, race detector
	@hack/step 'generated files' bash -c '$(MAKE) gen && git diff --exit-code -- api || { echo "run make gen and commit the result"; exit 1; }'
	@$(MAKE) test
	@$(MAKE) race
	@$(MAKE) lint
	@$(MAKE) chart
	@$(MAKE) conformance
	@$(MAKE) deploy
	@$(MAKE) ship
	@$(MAKE) vuln
