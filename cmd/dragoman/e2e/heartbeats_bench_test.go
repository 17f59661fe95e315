package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// beating is how many agents send heartbeats in the benchmark, one a second each, and
// clockTick what the kernel counts the time of a process in.
const (
	beating   = 1000
	clockTick = 10 * time.Millisecond
)

// BenchmarkThousandAgentsWithHeartbeats measures how much of a core a hub in a process of its own
// uses to answer a thousand Parallax agents that send a heartbeat with metrics every second. An
// operation is ten seconds of that.
func BenchmarkThousandAgentsWithHeartbeats(b *testing.B) {
	if _, err := cpuOf(os.Getpid()); err != nil {
		b.Skipf("the time of a process is read from /proc: %v", err)
	}
	settings := b.TempDir() + "/dragoman.yaml"
	if err := os.WriteFile(settings, []byte("parallax: {heartbeat_interval: 1s}"), 0o600); err != nil {
		b.Fatal(err)
	}
	hub := startHub(b, "--config", settings, "--log-level", "info")
	go func() {
		for hub.log.Scan() { // a hub blocks if its log is not read
		}
	}()
	ctx, cancel := context.WithCancel(b.Context())
	var life sync.WaitGroup
	b.Cleanup(func() {
		cancel()
		life.Wait()
	})
	var answered sync.WaitGroup
	conns := make([]*websocket.Conn, beating)
	for i := range conns {
		conn, _, err := websocket.Dial(ctx, "ws://"+hub.http+service.ParallaxPath, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-Id": {fmt.Sprintf("a%d", i)}}})
		if err != nil {
			b.Fatal(err)
		}
		conns[i] = conn
		register := []byte(`{"type":"register","id":"r","payload":{"capabilities":["x"]}}`)
		if err := conn.Write(ctx, websocket.MessageText, register); err != nil {
			b.Fatal(err)
		}
		if _, _, err := conn.Read(ctx); err != nil {
			b.Fatal(err)
		}
		life.Go(func() {
			defer conn.CloseNow()
			for {
				_, frame, err := conn.Read(ctx)
				if err != nil {
					return
				}
				if !bytes.Contains(frame, []byte(`"heartbeat_ack"`)) {
					b.Errorf("got %s, want an acknowledgement", frame)
				}
				answered.Done()
			}
		})
	}

	const seconds, rounds = 10, 10 // in each second a tenth of the agents at a time
	beat := []byte(`{"type":"heartbeat","id":"msg_004","timestamp":"2024-01-15T10:30:10.000Z","payload":{"status":"healthy","activeTasks":2,"metrics":{"cpuUsage":45,"memoryUsage":60,"tasksCompleted":100,"averageLatency":1200}}}`)
	var used, passed time.Duration
	for b.Loop() {
		before, err := cpuOf(hub.cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		due := time.NewTicker(time.Second / rounds)
		for i := range seconds * rounds {
			<-due.C
			for a := i % rounds; a < beating; a += rounds {
				answered.Add(1)
				if err := conns[a].Write(ctx, websocket.MessageText, beat); err != nil {
					b.Fatal(err)
				}
			}
		}
		due.Stop()
		answered.Wait()
		after, err := cpuOf(hub.cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		used, passed = used+after-before, passed+time.Since(began)
	}
	b.ReportMetric(used.Seconds()/passed.Seconds(), "cores")
	b.ReportMetric(0, "ns/op") // ten seconds, as it is written
}

// cpuOf returns the CPU time of a process.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The fields after the name, which is in parentheses and may contain blanks.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	var ticks int64
	for _, f := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}
