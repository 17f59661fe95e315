# Each target calls one tool; what takes more than a line stands in .ci/.

# The ledgers are compared with the specifications where these are at hand.
export SPECS ?= $(wildcard $(abspath ../shared/specs))

.PHONY: build program help install uninstall release release-test run test test-full stress cover check fuzz bench gen demo soak simulate simulate-faults kill kill-alone starve bench-cluster guides conformance systems journal path first-run pictures docs

build: # bin/dragoman, as it is released, and its manual pages
	bash .ci/build

help: # the targets
	@awk '/^[a-z-]+:.*# / { target = $$0; sub(/:.*/, "", target); sub(/^[^#]*# /, ""); printf "%-16s %s\n", target, $$0 }' Makefile

install: # what make build has made, with completions, below PREFIX (default /usr/local; DESTDIR goes before it)
	bash .ci/install install '$(DESTDIR)$(or $(PREFIX),/usr/local)'

uninstall: # removes what make install installs of this build; with the same PREFIX and DESTDIR
	bash .ci/install uninstall '$(DESTDIR)$(or $(PREFIX),/usr/local)'

release: # archives, packages, an image, a chart and checksums in dist/release
	bash .ci/release

release-test: # makes a release twice, and installs its package in a new Debian, which needs root and debootstrap
	go -C tools/release test -count=1 -v -timeout 30m ./...

program: # bin/dragoman alone
	@bash .ci/build bin

run: program # the hub, with its journal in ./data; the first time it is compiled before
	@./bin/dragoman serve --data-dir ./data

demo: program # one hub and an agent of each dialect, each asking every other
	@./bin/dragoman demo

test: # the tests that a change needs, within 5 minutes; the core with the race detector, which needs a C compiler
	bash .ci/test

test-full: # every test, planted faults and make cover, with a report; ONLY=adapters/mcp for the tests of a folder
	ONLY='$(ONLY)' bash .ci/test-full

stress: # TEST=name beside four busy neighbours, 100 times or for 20 minutes
	bash .ci/stress '$(TEST)'

cover: # how many statements of each part make test reaches, beside what is kept in .ci/coverage; UPDATE=1 keeps these
	UPDATE='$(UPDATE)' bash .ci/cover

check: # everything about the repository that is not a test's business
	bash .ci/check

fuzz: # fuzz targets, a slice of FUZZTIME each (default 20s); EXECS=100000000 goes on until each has had so many executions over all runs; FUZZ=core/topic for some
	EXECS='$(EXECS)' FUZZ='$(FUZZ)' bash .ci/fuzz

soak: program # a hub under load in every dialect, with churn and faults, for HOURS (default 8); SOAKDIR=dir goes on where an interrupted one was
	go test -count=1 -timeout 0 -v -run '^TestSoak$$' ./cmd/dragoman/e2e -soak.hours $(or $(HOURS),8) -soak.dir '$(abspath $(SOAKDIR))' -soak.program '$(CURDIR)/bin/dragoman'
	go test -count=1 -timeout 10m -v -run '^TestSoakMemory$$' ./core/hub -soak.memory

simulate: # SCHEDULES schedules of a cluster in which everything goes wrong (default 1,000,000), from SEED on; SCHEDULES=1 SEED=n shows all of one
	go test -count=1 -timeout 0 -v -run '^TestSimulate$$' ./adapters/peer -sim.schedules $(or $(SCHEDULES),1000000) -sim.seed $(or $(SEED),1)

simulate-faults: # plants the faults of adapters/peer/testdata/faults.json one by one, each of which the simulation has to find
	go test -count=1 -timeout 0 -v -run '^TestTheSimulationFindsFaults$$' ./adapters/peer -sim.faults $(or $(SCHEDULES),10000)

kill: # kills and stops hubs of clusters, with NATS embedded and beside them, KILLS times (default 1,000) under load in every dialect; SEED=n for the same ones again
	go test -count=1 -timeout 0 -v -run '^TestHubsAreKilledUnderLoad$$' ./cmd/dragoman/e2e -kills $(or $(KILLS),1000) -kills.seed $(or $(SEED),0)

kill-alone: # kills a hub alone KILLS times (default 300) under load in every dialect
	go test -count=1 -timeout 0 -v -run '^TestALoneHubIsKilledUnderLoad$$' ./cmd/dragoman/e2e -kills $(or $(KILLS),300)

starve: # hubs of a cluster work for an hour (BUSY=10m) beside eight busy neighbours, and none may be taken over
	go test -count=1 -timeout 0 -v -run '^TestHubsBesideBusyNeighboursAreNotTakenOver$$' ./cmd/dragoman/e2e -cluster.busy $(or $(BUSY),1h)

bench-cluster: # what a cluster of three hubs costs: questions to another hub, chunks, three hubs over one, 10,000 agents
	go test -count=1 -timeout 0 -v -run '^TestFigures' ./cmd/dragoman/e2e -cluster.figures

guides: # the published coding agents, the client acpx, the sample agents of the Parallax page and its published SDK, which make test-full runs too; fails where they cannot be installed
	go test -count=1 -v -run '^TestPublishedAgents|^TestTheSampleAgents|^TestThePublished' ./cmd/dragoman/e2e -install.required

first-run: # a first run as a new user has it, with commands and times: clone, build with cold caches, hub, Gemini CLI, question
	go test -count=1 -timeout 30m -v -run '^TestAFirstRun' ./cmd/dragoman/e2e -first.run -install.required

journal: program # keeps the journal of this version, NAME=v0.1.0, among those that every later version has to open
	bash .ci/journal bin/dragoman cmd/dragoman/e2e/testdata/journals/$(NAME).tar.gz

path: # functions, files, packages, statements and calls of the hub for one question of pi, REST and ACP; LIST=1 names the functions, JOURNAL=1 counts with a journal
	bash .ci/path $(if $(LIST),-list) $(if $(JOURNAL),-journal)

systems: # whether the program and its tests compile for Windows and macOS
	bash .ci/systems

conformance: # the public conformance suites, which make test-full runs too; fails where they cannot be installed
	go test -count=1 -timeout 15m -v ./cmd/dragoman/conformance -install.required

pictures: # the pictures in docs/pictures: of the console, by Chromium, and of a terminal
	mkdir -p docs/pictures
	go test -count=1 -timeout 10m -run '^TestPictures$$|^TestThePictureThatMoves$$' ./cmd/dragoman/e2e -console.pictures $(CURDIR)/docs/pictures

docs: # a site of docs/ with a search, in dist/site; needs Node and npm
	npm ci --prefix tools/site --ignore-scripts --no-audit --no-fund
	npm run --prefix tools/site build

bench: # what a question costs, beside a plain relay, in two minutes; ROWS=single,burst for some rows, BASE=path for another build beside
	go run ./tools/bench $(if $(ROWS),-rows '$(ROWS)') $(if $(BASE),-base-binary '$(BASE)')

gen: # every generated file, in place
	bash .ci/gen
