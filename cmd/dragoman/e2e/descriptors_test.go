package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// limitedHub is a hub in a process with few file descriptors.
type limitedHub struct {
	service.Addresses
	mu    sync.Mutex
	lines []string
}

func startLimitedHub(t *testing.T, files int) *limitedHub {
	t.Helper()
	dir := t.TempDir()
	socket := filepath.Join(dir, "pi.sock")
	hub := program(t, "serve", "--data-dir", filepath.Join(dir, "data"), "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "127.0.0.1:0",
		"--pi-socket", socket, "--log-format", "json")
	cmd := exec.Command("sh", append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), hub.Path}, hub.Args[1:]...)...)
	cmd.Env = hub.Env
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &limitedHub{}
	lines := bufio.NewScanner(log)
	read := func() bool {
		if !lines.Scan() {
			return false
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.lines = append(h.lines, lines.Text())
		return true
	}
	for h.HTTP == "" && read() {
		var ready struct {
			Message, GRPC, HTTP, Pi string
		}
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready.Message == "the hub is ready" {
			h.Addresses = service.Addresses{GRPC: ready.GRPC, HTTP: ready.HTTP, Pi: ready.Pi, PiSocket: socket}
		}
	}
	if h.HTTP == "" {
		t.Fatalf("the hub ended before it was ready: %v: %s", cmd.Wait(), h.lines)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for read() {
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		<-drained
		if err := cmd.Wait(); err != nil {
			t.Errorf("the hub ended with %v, want it in good order", err)
		}
	})
	return h
}

// logged returns the lines of the log that contain a text.
func (h *limitedHub) logged(text string) (lines []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lines {
		if strings.Contains(l, text) {
			lines = append(lines, l)
		}
	}
	return lines
}

// request sends a request over a connection and returns the answer, or that the connection was
// closed.
func request(conn net.Conn, method, path, body string) (status int, answer string, err error) {
	_ = conn.SetDeadline(time.Now().Add(watchdog))
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// A hub that runs out of file descriptors refuses connections with an error and serves those it
// has: health, the journal, agents and clients.
func TestAHubOutOfFileDescriptorsStaysHealthy(t *testing.T) {
	hub := startLimitedHub(t, 128)
	ctx, leave := context.WithCancel(t.Context())
	var agent sync.WaitGroup
	defer agent.Wait()
	defer leave()
	in := make(chan struct{})
	agent.Go(func() {
		_ = client.JoinParallax(ctx, client.Hub{URL: "http://" + hub.HTTP}, core.Card{ID: "keeper"}, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: "kept"})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	})
	<-in

	var open []net.Conn
	defer func() {
		for _, conn := range open {
			conn.Close()
		}
	}()
	dial := func(network, addr string) net.Conn {
		t.Helper()
		conn, err := net.Dial(network, addr)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	status := http.StatusOK
	for len(open) < 128 && status == http.StatusOK {
		conn := dial("tcp", hub.HTTP)
		open = append(open, conn)
		var answer string
		var err error
		if status, answer, err = request(conn, http.MethodGet, "/v1/hub", ""); err != nil {
			t.Fatalf("connection %d: got %v, want an answer", len(open), err)
		}
		if status != http.StatusOK && (status != http.StatusServiceUnavailable || !strings.Contains(answer, `"code":"overloaded"`)) {
			t.Errorf("connection %d: got %d %s, want 503 overloaded", len(open), status, answer)
		}
	}
	const least = 40
	if n := len(open) - 1; n < least || status == http.StatusOK {
		t.Fatalf("got %d connections, the last answered %d, want at least %d and then a refusal", n, status, least)
	}
	open[len(open)-1].Close()
	open = open[:len(open)-1]

	// Every listener refuses, however often it is tried, and the health checks answer.
	for range 20 {
		for network, addr := range map[string]string{"tcp": hub.GRPC, "unix": hub.PiSocket} {
			conn := dial(network, addr)
			_ = conn.SetDeadline(time.Now().Add(watchdog))
			if b, err := io.ReadAll(conn); err == nil && len(b) > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: got %q and %v, want the connection closed", addr, b, err)
			}
			conn.Close()
		}
		conn := dial("tcp", hub.Pi)
		if status, answer, err := request(conn, http.MethodGet, "/", ""); err != nil || status != http.StatusServiceUnavailable {
			t.Errorf("pi: got %d %s and %v, want 503", status, answer, err)
		}
		conn.Close()
		for _, path := range []string{service.HealthPath, service.ReadyPath} {
			conn := dial("tcp", hub.HTTP)
			if status, answer, err := request(conn, http.MethodGet, path, ""); err != nil || status != http.StatusOK {
				t.Errorf("%s: got %d %s and %v, want 200", path, status, answer, err)
			}
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: behind the answer: got %v, want the connection closed", path, err)
			}
			conn.Close()
		}
	}
	for i := range 5 {
		body := `{"to":"keeper","content":"answer","receipt":"recorded"}`
		status, answer, err := request(open[i], http.MethodPost, "/v1/tasks?wait=true", body)
		if err != nil || status != http.StatusOK || !strings.Contains(answer, `"stage":"recorded"`) {
			t.Errorf("a task: got %d %s and %v, want it done and recorded", status, answer, err)
		}
	}
	if got := hub.logged("raise the limit"); len(got) == 0 || len(got) > 2 {
		t.Errorf("got %d lines of %s, want one a period", len(got), got)
	}

	// Once some are closed there is room again.
	for range 10 {
		open[len(open)-1].Close()
		open = open[:len(open)-1]
	}
	for status = 0; status != http.StatusOK; {
		conn := dial("tcp", hub.HTTP)
		var err error
		if status, _, err = request(conn, http.MethodGet, "/v1/hub", ""); err != nil {
			t.Fatalf("when there is room again: got %v, want an answer", err)
		}
		conn.Close()
	}
}

func TestAHubWithTooFewFileDescriptorsDoesNotStart(t *testing.T) {
	cmd := exec.Command("sh", "-c", `ulimit -n 48 && exec "$0" serve --grpc-addr "" --pi-addr "" --http-addr 127.0.0.1:0`, program(t).Path)
	cmd.Env = program(t).Env
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "the process may open 48 files, a hub needs 64") {
		t.Errorf("got %v and %s, want it to say how many files it needs", err, out)
	}
}
