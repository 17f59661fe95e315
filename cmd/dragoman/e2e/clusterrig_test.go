package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// hubCluster is several hubs, each a process, that work as one. They are named a, b, c and so on.
type hubCluster []*clusterHub

// clusterHub is one hub of a cluster. Its addresses and its data are the same in all of its lives.
type clusterHub struct {
	*client.Client // of its REST interface
	name           string
	grpc, pi       string   // where it listens, beside URL
	route          string   // where it takes the connections of other hubs
	dir            string   // with its data and its log
	args           []string // of its command line; changes hold from the next start on

	t   testing.TB
	mu  sync.Mutex
	cmd *exec.Cmd // of its process; nil if it has none
}

// startCluster starts n hubs that meet at their embedded servers, and returns once each hears all.
// They are killed when the test ends, and a test that failed shows their logs.
func startCluster(t testing.TB, n int, args ...string) hubCluster {
	t.Helper()
	c := newCluster(t, n, args...)
	c.start()
	return c
}

// newCluster returns a cluster whose hubs have not started yet.
func newCluster(t testing.TB, n int, args ...string) hubCluster {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of this test alone"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newHubs(t, n, args...)
	var routes []string
	for _, h := range c {
		h.route = fixedAddr(t)
		routes = append(routes, h.route)
	}
	for _, h := range c {
		h.args = append(h.args, "--config", h.config("cluster:\n  secret_file: "+secret+"\n"), "--cluster-listen", h.route, "--cluster-peers", strings.Join(routes, ","))
	}
	return c
}

// newHubs returns hubs that have not started yet, and a name each.
func newHubs(t testing.TB, n int, args ...string) (c hubCluster) {
	t.Helper()
	if n > 2 {
		tier.Full(t, "it runs three hubs")
	}
	for i := range n {
		h := &clusterHub{t: t, name: string(rune('a' + i)), dir: t.TempDir(), grpc: fixedAddr(t), pi: fixedAddr(t)}
		h.Client = &client.Client{URL: "http://" + fixedAddr(t), HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		h.args = append([]string{
			"serve", "--hub-name", h.name, "--data-dir", filepath.Join(h.dir, "data"), "--log-format", "json",
			"--http-addr", strings.TrimPrefix(h.URL, "http://"), "--grpc-addr", h.grpc, "--pi-addr", h.pi,
		}, args...)
		t.Cleanup(h.showLog)
		t.Cleanup(h.kill)
		c = append(c, h)
	}
	return c
}

// fixedAddr returns an address that nothing listens on, and whose port nobody gets by itself, also while a
// hub is away.
func fixedAddr(t testing.TB) string {
	t.Helper()
	return coretest.Address(t)
}

// nextPort is counted from a start that other test processes do not have.
var nextPort atomic.Uint32

func init() { nextPort.Store(rand.Uint32N(1 << 31)) }

// fixedPorts returns the first of n ports of loopback in a row that nothing listens on, and that no
// connection gets by itself.
func fixedPorts(t testing.TB, n uint32) (port uint32) {
	t.Helper()
	const first, ports = 10_000, 22_000 // Linux gives ports above, other systems far above
	for range 100 {
		if port = first + (nextPort.Add(n)-n)%ports; areFree(port, n) {
			return port
		}
	}
	t.Fatal("no free ports were found")
	return 0
}

func areFree(port, n uint32) bool {
	for ; n > 0; n-- {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
		port++
	}
	return true
}

// config writes the settings of the hub and returns the file. Those of the command line go before.
func (h *clusterHub) config(yaml string) (file string) {
	h.t.Helper()
	file = filepath.Join(h.dir, "dragoman.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}

// addConfig adds lines to the settings of the hub.
func (h *clusterHub) addConfig(yaml string) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, "dragoman.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.config(string(text) + yaml)
}

// start starts all hubs at once and returns once each hears all.
func (c hubCluster) start() {
	for _, h := range c {
		h.t.Helper()
		h.start()
	}
	for _, h := range c {
		h.untilReady()
	}
	c.untilAllUp()
}

// untilAllUp waits until each hub is ready and sees all hubs up.
func (c hubCluster) untilAllUp() {
	for _, h := range c {
		h.t.Helper()
		h.untilReady()
		h.untilHubs(fmt.Sprintf("hub %s hears all %d", h.name, len(c)), func(hubs []cluster.Hub) bool { return len(hubs) == len(c) && allAre(hubs, cluster.Up) })
	}
}

func allAre(hubs []cluster.Hub, s cluster.State) bool {
	for _, h := range hubs {
		if h.State != s {
			return false
		}
	}
	return true
}

// start begins the process of the hub. It does not wait.
func (h *clusterHub) start() {
	h.t.Helper()
	cmd := program(h.t, h.args...)
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close() // the process has its own
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cmd = cmd
}

func (h *clusterHub) logFile() string { return filepath.Join(h.dir, "log") }

// log returns what all lives of the hub have logged.
func (h *clusterHub) log() string {
	text, err := os.ReadFile(h.logFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Error(err)
	}
	return string(text)
}

// showLog shows the end of the log if the test failed, with all goroutines of a hub that was to show
// them.
func (h *clusterHub) showLog() {
	if h.t.Failed() {
		text, most := h.log(), 64<<10
		if i := strings.Index(text, "SIGQUIT"); i >= 0 {
			most += len(text) - i
		}
		h.t.Logf("the log of hub %s:\n%s", h.name, text[max(0, len(text)-most):])
	}
}

// signal sends a signal to the process of the hub, if it has one.
func (h *clusterHub) signal(s os.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd != nil {
		_ = h.cmd.Process.Signal(s) // it may have ended
	}
}

// kill kills the hub, as a crash of its machine does.
func (h *clusterHub) kill() {
	h.signal(syscall.SIGKILL)
	h.wait()
}

// stop makes the process stand still, so that nobody hears of it, until cont.
func (h *clusterHub) stop() { h.signal(pause) }

// cont lets a process that was stopped go on.
func (h *clusterHub) cont() { h.signal(resume) }

// interrupt shuts the hub down in good order and returns its exit code.
func (h *clusterHub) interrupt() (code int) {
	h.signal(syscall.SIGTERM)
	return h.wait()
}

// wait waits until the process has ended and returns its exit code.
func (h *clusterHub) wait() (code int) {
	h.mu.Lock()
	cmd := h.cmd
	h.cmd = nil
	h.mu.Unlock()
	if cmd == nil {
		return 0
	}
	_ = cmd.Wait() // the exit code is returned
	return cmd.ProcessState.ExitCode()
}

// ready reports whether the hub takes new work.
func (h *clusterHub) ready() bool {
	ctx, cancel := context.WithTimeout(h.t.Context(), client.ResponseTimeout)
	defer cancel()
	resp, err := h.Do(ctx, http.MethodGet, "/readyz", "text/plain", nil)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return true
}

// untilReady waits until the hub takes new work.
func (h *clusterHub) untilReady() {
	h.t.Helper()
	h.until("hub "+h.name+" is ready", func() error { return notYet(h.ready(), "it is not") })
}

// untilHubs waits until the hub sees its cluster so.
func (h *clusterHub) untilHubs(what string, so func([]cluster.Hub) bool) {
	h.t.Helper()
	h.until(what, func() error {
		var v struct{ Cluster struct{ Hubs []cluster.Hub } }
		ctx, cancel := context.WithTimeout(h.t.Context(), client.ResponseTimeout)
		defer cancel()
		if err := h.Get(ctx, "/v1/hub", &v); err != nil {
			return err
		} else if !so(v.Cluster.Hubs) {
			return fmt.Errorf("it sees %+v", v.Cluster.Hubs)
		}
		return nil
	})
}

// notYet returns the error of a condition that does not hold.
func notYet(holds bool, why string) error {
	if holds {
		return nil
	}
	return errors.New(why)
}

// until polls a hub until something holds.
func (h *clusterHub) until(what string, holds func() error) {
	h.t.Helper()
	for late := time.Now().Add(watchdog); ; {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(late) {
			h.signal(syscall.SIGQUIT) // its log shows what it waits for
			h.wait()
			h.t.Fatalf("waited until %s: %v", what, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
