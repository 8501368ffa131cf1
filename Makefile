# `make` alone shows what there is to do.

VERSION  := $(shell git describe --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 30s
TOOL     := go tool -modfile=tools/go.mod

# The race detector, except in code of others that takes most of the time and
# shares no memory with ours that the detector watches. It must not use sync.Map or
# other generic code: the linker may take its copy for all packages, and the detector
# then reports races where there are none. test/daemon builds the daemon in the same way.
UNWATCHED := modernc.org/sqlite/lib modernc.org/libc/... modernc.org/memory
RACE      := -race $(foreach package,$(UNWATCHED),-gcflags=$(package)=-race=false)

# The packages without goroutines, in which there is no race to find;
# TestSequentialPackages checks that.
SEQUENTIAL := . ./aggregate ./bimi ./dane ./dkim ./dmarc ./dns ./dns/txt ./failure ./mtasts ./spf ./tlsrpt \
	$(addprefix ./internal/,cold config corpustest facts goldentest intake/unpack phrase quirk reporttext reporturi \
	resolver/zone rollup senders/mmdb senders/networks store/shape web/ui wire)

# The packages that only test the built daemon. The race detector is for the daemon, and not
# for their tests (DMARCD_TEST_RACE).
OUTSIDE := ./test/e2e ./test/browser ./test/adversary ./test/truth ./test/clients ./test/mcp

# What make mutate tries: the packages in which a wrong condition costs most.
MUTATE := dmarc spf dkim aggregate failure tlsrpt internal/auth internal/intake/unpack

# The statements that the tests run on PostgreSQL, for test/tenantsql.
STATEMENTS := $(CURDIR)/.cache/statements

# The folder into which make looks draws.
LOOKS := $(CURDIR)/.cache/looks

.DEFAULT_GOAL := help
.PHONY: help build run demo test race with-server test-daemon test-packages test-sequential test-packaging test-pgbouncer test-citus adversary test-short soak mutate lint fuzz bench vuln gen release test-release test-rolling screenshots looks

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the static binary bin/dmarcd
	scripts/build-assets.sh
	scripts/need-networks.sh
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/dmarcd ./cmd/dmarcd

run: build ## build, and serve on SQLite in ./data
	bin/dmarcd serve

demo: build ## build, and serve two sample teams with a year of reports
	bin/dmarcd demo

test: ## run every test, on SQLite and PostgreSQL; installs what it needs
	scripts/need-compiler.sh
	scripts/need-servers.sh
	scripts/need-node.sh
	scripts/need-browser.sh
	scripts/need-pdf.sh
	scripts/build-assets.sh
	scripts/with-postgres.sh $(MAKE) with-server
	@scripts/say-skipped.sh

race: ## like test, with the race detector in all that runs concurrently, and through PgBouncer
	DMARCD_TEST_RACE=1 $(MAKE) test DETECT='$(RACE)' ALSO=test-pgbouncer

with-server: # the part of test that needs a PostgreSQL
	mkdir -p $(dir $(STATEMENTS)) && rm -f $(STATEMENTS)
	$(MAKE) --jobs=3 test-daemon test-packages $(ALSO) test-packaging test-sequential
	cd test/tenantsql && DMARCD_TEST_STATEMENTS=$(STATEMENTS) go test -count=1 -timeout=40m ./...

# GOGC is for the tests; the daemon does not inherit it.
test-daemon: # the tests of the built daemon, the longest first; they often wait
	GOGC=400 go test -timeout=60m $(OUTSIDE)

test-packages: # what runs in the process of its tests, the longest first
	DMARCD_TEST_STATEMENTS=$(STATEMENTS) go test $(DETECT) -timeout=60m ./internal/store \
		$$(go list ./... | grep -vxF "$$(go list $(SEQUENTIAL) $(OUTSIDE))")

test-sequential: # what has no goroutines
	go test $(SEQUENTIAL)

test-packaging: # the image; the chart, the dashboard and the alert rules: files outside of the module
	cd tools/release && go test -count=1 ./...
	scripts/test-image.sh

# Without the longest of the tests that use SQLite or servers of their own. They come first: a
# pattern that matches the beginning of a test's name hides those behind it.
test-pgbouncer: ## run the store's tests through PgBouncer in transaction mode
	scripts/need-servers.sh
	scripts/with-postgres.sh scripts/with-pgbouncer.sh go test -count=1 -timeout=30m \
		-skip '^TestModel$$|^TestDamagedRollup$$|/^sqlite$$|//^sqlite$$' ./internal/store

test-citus: ## run the store's tests on the Citus cluster that DMARCD_TEST_CITUS names (docs/scaling.md)
	@[ -n "$$DMARCD_TEST_CITUS" ] || { echo 'Set DMARCD_TEST_CITUS to the URL of a database on the coordinator of a Citus cluster: see docs/scaling.md.' >&2; exit 1; }
	go test -count=1 -timeout=60m -skip '/^sqlite$$|//^sqlite$$' ./internal/store

adversary: ## attack the built binary as outsiders and tenants could, on both engines
	scripts/need-compiler.sh
	scripts/with-postgres.sh go test -count=1 -timeout=30m ./test/adversary

# The longest packages first; without vet, which lint runs, with fewer collections of garbage,
# which the compiler, the linker and the tests spend a tenth of their time on, and with files
# in memory, databases and test programs: a commit of SQLite waits for the disk, and so does the
# linker. Packages that only tests use are not tested.
test-short: ## run what needs nothing but Go, on SQLite, in half a minute
	. scripts/memory.sh; ! plenty_of_memory || use_memory; \
	GOTMPDIR="$$TMPDIR" GOGC=400 go test -short -vet=off -parallel=4 ./internal/store ./cmd/dmarcd ./internal/service ./internal/app ./internal/api \
		$$(go list ./... | grep -v '/test/\|test$$')
	@scripts/say-skipped.sh

soak: ## run every test 20 times, then each fuzz target for an hour, then mutate, then simulate a day and grow to 10^8 records (30 GB)
	scripts/need-compiler.sh
	scripts/need-servers.sh
	scripts/need-node.sh
	scripts/need-browser.sh
	scripts/need-pdf.sh
	scripts/build-assets.sh
	DMARCD_SOAK=1 DMARCD_TEST_RACE=1 DMARCD_E2E_KILLS=200 DMARCD_DISCOVERY_SEEDS=200 scripts/with-postgres.sh go test $(RACE) -count=20 -timeout=0 ./...
	FUZZTIME=1h scripts/fuzz.sh
	$(MAKE) mutate
	scripts/with-postgres.sh go run ./bench -run day -engine PostgreSQL
	DMARCD_TEST_DISK=1 scripts/with-postgres.sh go run ./bench -run growth -engine PostgreSQL -records 100000000
	go run ./bench -run growth -engine SQLite -records 100000000

mutate: ## change the code and look for changes that no test notices (docs/testing.md)
	for package in $(MUTATE); do GOFLAGS=-short $(TOOL) gremlins unleash --output-statuses lct ./$$package || exit 1; done

lint: ## check form and common mistakes
	$(TOOL) golangci-lint run
	@if command -v shellcheck >/dev/null; then shellcheck --severity=warning .ci/run scripts/*.sh; fi

fuzz: ## run each fuzz target for FUZZTIME (30s)
	FUZZTIME=$(FUZZTIME) scripts/fuzz.sh

bench: ## run the benchmarks of the packages and of the daemon
	scripts/with-postgres.sh go test -run='^$$' -bench=. -benchmem ./...
	scripts/with-postgres.sh go run ./bench

vuln: ## look for known vulnerabilities; VULNDB is a mirror of their database
	@$(TOOL) govulncheck $(if $(VULNDB),-db $(VULNDB)) ./... || { status=$$?; [ $$status = 3 ] || \
		echo 'vuln: nothing was looked up. Run it where the database can be reached, or set VULNDB to the URL of a mirror.' >&2; exit $$status; }

gen: ## regenerate what comes from the code: the findings, the settings, the document of the API, the pages of dmarcd check
	go test ./internal/dnscheck -run Documented -update
	go test ./internal/config -run Documented -update
	go test ./internal/api -run Generated -update
	go test ./internal/app -run Documented -update
	go test ./cmd/dmarcd -update

release: ## build all that a release consists of into dist (docs/releasing.md)
	scripts/build-assets.sh
	scripts/need-networks.sh
	cd tools/release && go run . -o ../../dist $(RELEASE)

test-release: ## make a release from a fresh clone, and install, upgrade, roll back and remove its package
	scripts/test-release.sh

test-rolling: ## upgrade replicas on PostgreSQL under load, from the version before
	scripts/test-rolling.sh

screenshots: ## draw every page of the sample team into docs/screenshots: light, dark, and as on a phone
	scripts/build-assets.sh
	scripts/need-node.sh
	scripts/need-browser.sh
	mkdir -p docs/screenshots && rm -f docs/screenshots/*.png
	go test ./test/browser -run 'TestDemo/looks' -count=1 -screenshots '$(CURDIR)/docs/screenshots'

looks: ## draw every page at 1440, 768 and 360 pixels, light and dark, into the folder LOOKS
	scripts/build-assets.sh
	scripts/need-node.sh
	scripts/need-browser.sh
	mkdir -p $(LOOKS)
	go test ./test/browser -run '^TestDemo$$/looks' -count=1 -every-screen '$(abspath $(LOOKS))'
	go test ./test/browser -skip '^(TestDemo|TestMails)$$' -count=1 -every-screen '$(abspath $(LOOKS))'
