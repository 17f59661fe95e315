package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

var (
	soakHours   = flag.Float64("soak.hours", 0, "how long the soak takes in all of its slices; 0 is the short one of an ordinary run")
	soakDir     = flag.String("soak.dir", "", "the directory that a soak is begun and continued in; \"\" is one that is removed")
	soakProgram = flag.String("soak.program", "", "the program that is soaked; \"\" is this one")
	soakEvery   = flag.Duration("soak.every", 10*time.Second, "the time between two samples of the soak")
	soakBursts  = flag.Duration("soak.bursts", 5*time.Minute, "the time between two bursts of the soak")
)

// The short soak has some samples, and goes on until it has had every outcome.
const (
	shortSoak    = 12 * time.Second
	longestShort = 3 * time.Minute
	shortEvery   = 500 * time.Millisecond
	shortBurst   = 4 * time.Second
)

// A hub is a process under load in every dialect, with agents and clients that come and go, vanish
// within a chunk, stop reading, stop talking, say what is no frame, are late or never end. Every
// question has one end, which is the answer word for word or says why there is none; no event is
// missing and none comes twice; and once the load has left, so has everything that it took.
//
// "make soak" takes hours, in slices: each goes on with the directory of the one before it. Then
// nothing may grow over the last slice, within all of them, and from one to the next.
func TestSoak(t *testing.T) {
	tier.Full(t, "it runs a load for 12 s")
	t.Parallel()
	total, every, between := time.Duration(*soakHours*float64(time.Hour)), *soakEvery, *soakBursts
	if total == 0 {
		total, every, between = shortSoak, shortEvery, shortBurst
	}
	dir := *soakDir
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	samples, err := openSamples(filepath.Join(dir, "samples.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer samples.close()
	left := total - samples.elapsed()
	if left < every {
		t.Logf("the soak has had its %v:\n%s", total, samples.table())
		samples.judge(t, total, true)
		return
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	s := newSoak(t, dir)
	if samples.last() > 0 {
		s.checkStored(t)
	}
	rest := s.rest(t)
	s.start()
	if *soakHours == 0 {
		left = longestShort
	}
	ctx, cancel := context.WithTimeout(s.ctx, left)
	defer cancel()
	s.workers.Go(func() { s.bursts(ctx, between) })
	tick := time.NewTicker(every)
	defer tick.Stop()
	samples.begin()
	for ctx.Err() == nil && interrupted.Err() == nil {
		select {
		case <-tick.C:
			one, err := s.sample()
			if err != nil {
				s.wrong("a sample: %w", err)
				continue
			}
			samples.add(one)
			if *soakHours == 0 && samples.elapsed() >= shortSoak && len(s.missing()) == 0 {
				cancel()
			}
		case <-ctx.Done():
		case <-interrupted.Done():
		}
	}
	whole := interrupted.Err() == nil
	s.end()
	unanswered, tooMany := unansweredOf(s.counts)
	t.Logf("slice %d, %v of %v\n%s\n%s\n%s", samples.slice, samples.elapsed().Round(time.Second), total, samples.table(), s.outcomes(), strings.Join(s.burstLines, "\n"))
	t.Logf("questions to agents that never leave; the machine was late for %.1f %% of the time\n%s%s", 100*s.late.overall(), unanswered, strings.Join(s.unansweredLines, "\n"))
	if err := s.violation(); err != nil {
		t.Fatal(err)
	}
	if tooMany != nil {
		t.Errorf("more than %.2f %% without an answer: %v", 100*unansweredShare, tooMany)
	}
	if whole && left >= 2*between { // the rest of a soak may be too short for all of them
		for _, outcome := range s.missing() {
			t.Errorf("got no %q, want every outcome", outcome)
		}
	}
	s.untilRested(t, rest)
	if *soakHours > 0 && whole {
		s.lastBurst(t)
	}
	if code := s.hub.interrupt(); code != 0 {
		t.Errorf("the hub ended with %d, want 0", code)
	}
	if *soakHours > 0 {
		samples.judge(t, total, whole)
	}
}

// soak is a hub and its load.
type soak struct {
	t       *testing.T
	dir     string
	hub     *clusterHub
	ctx     context.Context //nolint:containedctx // until the load ends; every worker has it
	cancel  context.CancelCauseFunc
	workers sync.WaitGroup
	ledger  *soakLedger
	late    lateProbe

	bursting atomic.Bool // until the memory of a burst is returned

	mu         sync.Mutex
	asked      int
	counts     map[string]int // of outcomes
	ends       []soakEnd      // the latest that readers were told
	burstLines []string

	unansweredLines []string // the first of them
}

// soakSettings let what is stored and kept reach its limits within minutes.
const soakSettings = `
stop_timeout: 10s
journal: {age: 5m, bytes: 64MiB}
usage: {bytes: 1MiB}
audit: {bytes: 1MiB}
limits: {memory: 512MiB, threads: 128, finished_tasks: 128, cause_memory: 5s, keep_notices: 10s, cancel_grace: 500ms}
coven: {deadline: 60s}
acp: {deadline: 60s, keep_results: 10s, delegate_deadline: 60s}
parallax: {messages_per_second: 0, task_timeout: 60s}
pi: {prompt_timeout: 60s, session_lifetime: 1m, retries: 0, breakers: {agent_failures: 0}}
rest: {deadline: 60s}
mcp: {deadline: 60s}
a2a: {deadline: 60s}
native: {deadline: 60s}
websocket: {ping_timeout: 30s}
grpc: {ping_timeout: 30s}
agents:
  - {name: text-child, dialect: text, command: [%[1]q], env: [%[2]s=text], max_concurrent: 4}
  - {name: native-child, dialect: native, command: [%[1]q], env: [%[2]s=native], max_concurrent: 8}
  - {name: editor-child, dialect: editor, command: [%[1]q], env: [%[2]s=editor], max_concurrent: 8}
  - {name: pi-child, dialect: pi-rpc, command: [%[1]q], env: [%[2]s=pi], max_concurrent: 4, warm: 1}
  - {name: a2a-remote, dialect: a2a, url: %[3]q, max_concurrent: 8}
packs:
  - {name: words, command: [%[1]q], env: [%[2]s=pack], concurrent: 8}
`

// newSoak starts the hub and returns once it is ready.
func newSoak(t *testing.T, dir string) *soak {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hubs := newHubs(t, 2)
	h, far := hubs[0], hubs[1] // whose agent is one of A2A to the hub
	far.args = append(far.args, "--config", far.config(fmt.Sprintf("agents: [{name: far, dialect: native, command: [%q], env: [%s=native]}]", self, playsChild)))
	if err := startApart(program(t, far.args...), far); err != nil {
		t.Fatal(err)
	}
	far.untilReady()
	h.dir = dir
	h.args[slices.Index(h.args, "--data-dir")+1] = h.data()
	h.args = append(h.args, "--config", h.config(fmt.Sprintf(soakSettings, self, playsChild, far.URL+"/a2a/far")))
	h.HTTP = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	s := &soak{t: t, dir: dir, hub: h, counts: map[string]int{}}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.ledger = newSoakLedger(s)
	cmd := program(t, h.args...)
	if *soakProgram != "" {
		cmd.Path = *soakProgram
		cmd.Args[0] = *soakProgram
	}
	if err := startApart(cmd, h); err != nil {
		t.Fatal(err)
	}
	h.untilReady()
	for _, id := range steady[4:] {
		h.until(id+" answers", func() error { _, err := askAndWait(t.Context(), h, id, "hello"); return err })
	}
	h.until("the pack answers", func() error { _, err := askPack(t.Context(), h, "", "hello"); return err })
	return s
}

// startApart starts the process of a hub that an interrupt of the terminal does not reach: it is for
// the soak, which ends the hub.
func startApart(cmd *exec.Cmd, h *clusterHub) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	cmd.Stderr = log
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cmd = cmd
	return cmd.Start()
}

// wrong ends the load: what has happened must not.
func (s *soak) wrong(format string, a ...any) {
	s.cancel(fmt.Errorf(format, a...))
}

var errSoakIsOver = errors.New("the soak is over")

// end ends the load and waits until all of it has left.
func (s *soak) end() {
	s.cancel(errSoakIsOver)
	s.workers.Wait()
}

// violation returns what ended the load before its time.
func (s *soak) violation() error {
	if err := context.Cause(s.ctx); !errors.Is(err, errSoakIsOver) {
		return err
	}
	return nil
}

// count counts an outcome.
func (s *soak) count(outcome string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[outcome]++
}

// outcomes are the numbers of what happened.
func (s *soak) outcomes() (text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Sorted(maps.Keys(s.counts)) {
		text += fmt.Sprintf("%9d %s\n", s.counts[k], k)
	}
	return text
}

// missing are the outcomes that there were not: each dialect is to be answered, and everything that
// goes wrong has to go wrong.
func (s *soak) missing() []string {
	want := []string{
		"bursts", "half-open connections", "malformed frames", askerCancels + outcomeAnswered, askerLeaves + outcomeAnswered,
		askerExpires + outcomeAnswered, "rest: read slowly to the end",
		`agents that misbehave: ""`, `agents that misbehave: "timeout"`, `agents that misbehave: "unreachable"`,
	}
	for dialect := range s.askers() {
		want = append(want, dialect+outcomeAnswered)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(want, func(outcome string) bool { return s.counts[outcome] > 0 })
}

// newKey returns a content that only one question has.
func (s *soak) newKey() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return fmt.Sprintf("key%d.", s.asked)
}

// soakRest is what a hub without load has.
type soakRest struct {
	agents     []string
	goroutines float64
	files      float64
}

// rest waits until the agents of the settings are there, and returns what the hub has now.
func (s *soak) rest(t *testing.T) (r soakRest) {
	t.Helper()
	s.hub.until("the agents of the settings are ready", func() error {
		var err error
		r, err = s.restNow()
		return err
	})
	return r
}

func (s *soak) restNow() (r soakRest, err error) {
	var list struct {
		Agents []struct {
			ID   string
			Load struct{ Active, Queued int }
		}
	}
	if err := s.hub.Get(s.t.Context(), "/v1/agents", &list); err != nil {
		return r, err
	}
	for _, a := range list.Agents {
		r.agents = append(r.agents, a.ID)
		if a.Load.Active+a.Load.Queued > 0 {
			return r, fmt.Errorf("agent %s has %+v", a.ID, a.Load)
		}
	}
	now, err := s.sample()
	r.goroutines, r.files = now.values["goroutines"], now.values["files"]
	return r, err
}

// untilRested waits until the hub has no more than before the load: no task, no agent and no
// connection of it, no goroutine.
func (s *soak) untilRested(t *testing.T, before soakRest) {
	t.Helper()
	const slack = 48 // an agent of pi keeps the processes of its last eight threads, each with four files and three goroutines
	s.hub.until("everything that the load took has been given back", func() error {
		if all := (hubCluster{s.hub}).running(); len(all) > 0 {
			return fmt.Errorf("%d tasks run, such as %s", len(all), all[0])
		}
		now, err := s.restNow()
		if err != nil {
			return err
		}
		for _, a := range now.agents {
			if !slices.Contains(before.agents, a) {
				return fmt.Errorf("agent %s is still there", a)
			}
		}
		if now.goroutines > before.goroutines+slack || now.files > before.files+slack {
			return fmt.Errorf("got %+v, want what it was before the load: %+v", now, before)
		}
		return nil
	})
	s.saveEnds(t)
}
