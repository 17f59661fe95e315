package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// playTime is how long a hub may take for what it is asked.
const playTime = 5 * time.Minute

// agentID is the id of the agent that is asked. It answers with the question.
const agentID = "echo"

// few and many are how many questions hubs are asked that are compared. further is how many chunks follow the first
// one of an answer where it is chunks that are counted.
const few, many, further = 5, 25, 64

// A load is what a hub is asked: so many questions, each answered with so many chunks after the first.
type load struct{ questions, further int }

// times returns how many questions or chunks a load has more than few questions.
func (l load) times() int { return l.questions - few + l.questions*l.further }

// A stage runs hubs, each with an agent of its own.
type stage struct {
	dir, program string
	journal      bool // keep what is asked
	played       int
}

// play starts a hub and an agent, asks in a dialect, stops both, and returns what the hub counted.
func (s *stage) play(ctx context.Context, d dialect, l load) (counters, error) {
	dir, err := s.perform(ctx, d, l, func(addresses) error { return nil })
	if err != nil {
		return nil, err
	}
	return read(ctx, filepath.Join(dir, "hub"))
}

// allocations is play for how many objects the hub allocated. What asking for it costs is in every number.
func (s *stage) allocations(ctx context.Context, d dialect, l load) (n float64, err error) {
	_, err = s.perform(ctx, d, l, func(hub addresses) (err error) {
		n, err = allocated(ctx, hub)
		return err
	})
	return n, err
}

// prepare makes the directory of the next play, and the pipe that its agent reads.
func (s *stage) prepare(ctx context.Context) (dir string, seen *os.File, err error) {
	s.played++
	dir = filepath.Join(s.dir, fmt.Sprint(s.played))
	for _, name := range []string{"hub", "agent", "home"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return "", nil, err
		}
	}
	pipe := filepath.Join(dir, "seen")
	if err := exec.CommandContext(ctx, "mkfifo", pipe).Run(); err != nil { //nolint:gosec // a temporary directory
		return "", nil, fmt.Errorf("mkfifo: %w", err)
	}
	seen, err = os.OpenFile(pipe, os.O_RDWR, 0) // to read, too, so as not to wait for a reader
	return dir, seen, err
}

// perform plays, with a last act before the hub ends, and returns the directory with what was counted.
func (s *stage) perform(ctx context.Context, d dialect, l load, last func(hub addresses) error) (dir string, err error) {
	ctx, cancel := context.WithTimeout(ctx, playTime)
	defer cancel()
	dir, seen, err := s.prepare(ctx)
	if err != nil {
		return "", err
	}
	defer seen.Close()
	ready := filepath.Join(dir, "ready.json")
	serve := []string{"serve", "--ready-file", ready, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", ""}
	if s.journal {
		serve = append(serve, "--data-dir", filepath.Join(dir, "data"))
	}
	hub, err := s.start(dir, "hub", serve...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, hub.stop()) }()
	if err := hub.await(ctx, ready, "http"); err != nil {
		return "", err
	}
	at, err := addressesIn(ready)
	if err != nil {
		return "", err
	}
	at.seen = seen
	agent, err := s.start(dir, "agent", append([]string{"agent", "--hub", "http://" + at.HTTP, "--dialect", "coven", "--name", agentID, "--"}, l.answer()...)...)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, agent.stop()) }()
	if err := agent.await(ctx, agent.log, `"joined`); err != nil {
		return "", err
	}
	if err := askAll(ctx, d, at, l.questions); err != nil {
		return "", err
	}
	return dir, last(at)
}

// answer is the command that answers a question: with the question, and with further chunks, each once the one before
// was seen, so that no two are in one read or write.
func (l load) answer() []string {
	if l.further == 0 {
		return []string{"cat"}
	}
	return []string{"sh", "-c", fmt.Sprintf("exec 3<seen; cat; for i in $(seq %d); do read -r line <&3; echo hello; done; read -r line <&3", l.further)}
}

// askAll asks n questions one after the other, over one connection.
func askAll(ctx context.Context, d dialect, at addresses, n int) (err error) {
	c, err := d.connect(ctx, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	for i := range n {
		if err := c.ask(ctx, fmt.Sprint("q", i)); err != nil {
			return fmt.Errorf("question %d: %w", i, err)
		}
	}
	return nil
}

// addresses are where a hub is.
type addresses struct {
	HTTP, GRPC string
	seen       *os.File // the agent awaits a line here for each chunk, if its answer has several
}

// addressesIn returns those in a ready file.
func addressesIn(ready string) (at addresses, err error) {
	text, err := os.ReadFile(ready)
	if err != nil {
		return at, err
	}
	return at, json.Unmarshal(text, &at)
}

// allocated asks a hub how many objects it has allocated.
func allocated(ctx context.Context, hub addresses) (n float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+hub.HTTP+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	metrics, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(metrics), "\ngo_memstats_mallocs_total ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		return 0, fmt.Errorf("the metrics of the hub have no go_memstats_mallocs_total: %w", err)
	}
	return n, nil
}

// A child is a process of the program.
type child struct {
	cmd   *exec.Cmd
	log   string // the file of its stderr
	ended chan error
}

// start starts the program. Its counters go to the directory of this name, its log to the file beside it, and
// what is the user's has no part in it.
func (s *stage) start(dir, name string, args ...string) (*child, error) {
	c := &child{cmd: exec.Command(s.program, args...), log: filepath.Join(dir, name+".log"), ended: make(chan error, 1)} //nolint:gosec // built here
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd.Dir, c.cmd.Stderr = dir, log
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DRAGOMAN_") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	c.cmd.Env = append(c.cmd.Env, "HOME="+filepath.Join(dir, "home"), "GOCOVERDIR="+filepath.Join(dir, name),
		"DRAGOMAN_PI_RATES_SESSION=1000") // questions a minute: more than are asked
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.ended <- c.cmd.Wait() }()
	return c, nil
}

// await waits until a file has a text, which a child is to write. Its log is looked at, and not the list of
// agents: the hub would count that too.
func (c *child) await(ctx context.Context, file, text string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if said, err := os.ReadFile(file); err == nil && strings.Contains(string(said), text) {
			return nil
		}
		select {
		case <-tick.C:
		case err := <-c.ended:
			c.ended <- err
			return fmt.Errorf("%s has ended", c.cmd)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends a child and waits for it: an orderly end writes the counters. It returns what it logged if it failed.
func (c *child) stop() error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	kill := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	if err := <-c.ended; err != nil {
		said, _ := os.ReadFile(c.log) // without it the error is all that is known
		return fmt.Errorf("%s: %w\n%s", c.cmd, err, said)
	}
	return nil
}
