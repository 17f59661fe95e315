package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// parallaxConn is a Parallax agent whose frames a test reads and writes.
type parallaxConn struct {
	*testing.T
	conn *websocket.Conn
}

func dialParallax(t *testing.T, at string, header http.Header) *parallaxConn {
	t.Helper()
	conn, resp, err := websocket.Dial(t.Context(), "ws://"+at+service.ParallaxPath, &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Header.Get("X-Connection-Id") == "" {
		t.Error("got no X-Connection-Id in the answer, want one")
	}
	t.Cleanup(func() { conn.CloseNow() })
	return &parallaxConn{t, conn}
}

func (a *parallaxConn) send(frame string) {
	a.Helper()
	if err := a.conn.Write(a.Context(), websocket.MessageText, []byte(frame)); err != nil {
		a.Fatal(err)
	}
}

// wantFrame returns the next frame, which must contain all of the parts.
func (a *parallaxConn) wantFrame(what ...string) string {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), watchdog)
	defer cancel()
	_, frame, err := a.conn.Read(ctx)
	if err != nil {
		a.Fatalf("got %v, want %q", err, what)
	}
	for _, w := range what {
		if !strings.Contains(string(frame), w) {
			a.Errorf("got %s, want %s in it", frame, w)
		}
	}
	return string(frame)
}

func TestAnOperatorConfiguresAnAgentAndSeesItsHealth(t *testing.T) {
	h := newTestHub(t, nil)
	at := h.service.Addresses().HTTP
	a := dialParallax(t, at, http.Header{"X-Agent-Id": {"a"}})
	a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"maxConcurrentTasks":5}}}`)
	a.wantFrame(`"registered"`)
	code, out, _ := run(t, "config", "set-agent", "a", "--max-concurrent", "3", "--heartbeat", "5s", "--reason", "balance", "--hub", "http://"+at)
	if code != command.ExitDone || out != "a runs up to 3 tasks at once; it sends heartbeats every 5s\n" {
		t.Errorf("got %q and %d, want that it runs 3", out, code)
	}
	a.wantFrame(`"config_update"`, `"heartbeatInterval":5000`, `"maxConcurrentTasks":3`, `"reason":"balance"`)
	if code, _, _ := run(t, "config", "set-agent", "a", "--hub", "http://"+at); code != command.ExitUsage {
		t.Errorf("nothing to set: got %d, want %d", code, command.ExitUsage)
	}
	if code, _, _ := run(t, "config", "set-agent", "b", "--max-concurrent", "3", "--hub", "http://"+at); code != command.ExitFailed {
		t.Errorf("nobody: got %d, want %d", code, command.ExitFailed)
	}

	a.send(`{"type":"heartbeat","id":"h","payload":{"status":"healthy","activeTasks":2,"metrics":{"cpuUsage":45,"memoryUsage":60}}}`)
	a.wantFrame(`"heartbeat_ack"`)
	if _, out, _ := run(t, "agents", "-o", "wide", "--hub", "http://"+at); !strings.Contains(out, "healthy cpuUsage:45 memoryUsage:60") {
		t.Errorf("got %s, want the metrics of the heartbeat", out)
	}
	resp, err := http.Get("http://" + at + "/metrics") //nolint:noctx // it answers at once
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	scraped, _ := io.ReadAll(resp.Body)
	for _, want := range []string{
		`parallax_agents_connected{capability="x"} 1`, `dragoman_agent_vital{agent="a",metric="cpuUsage"} 45`,
		`parallax_ws_messages_total{direction="received",type="heartbeat"} 1`, `parallax_ws_messages_total{direction="sent",type="config_update"} 1`,
		`parallax_ws_message_latency_seconds_count{type="heartbeat"} 1`,
	} {
		if !strings.Contains(string(scraped), want+"\n") {
			t.Errorf("got no line %s in /metrics", want)
		}
	}
}

func TestSetAgentReportsTheAgentsOwnLimit(t *testing.T) {
	h := newTestHub(t, nil)
	at := h.service.Addresses().HTTP
	a := dialParallax(t, at, http.Header{"X-Agent-Id": {"a"}})
	a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"maxConcurrentTasks":2}}}`)
	a.wantFrame(`"registered"`)
	for most, want := range map[string]string{"3": "a runs up to 2 tasks at once: the agent itself accepts no more\n", "2": "a runs up to 2 tasks at once\n", "0": "a runs up to 2 tasks at once\n"} {
		if code, out, _ := run(t, "config", "set-agent", "a", "--max-concurrent", most, "--hub", "http://"+at); code != command.ExitDone || out != want {
			t.Errorf("%s: got %q and %d, want %q", most, out, code, want)
		}
	}
}

func TestSetAgentRaisesTheLimitOfAnAgentThatDeclaredNone(t *testing.T) {
	h := newTestHub(t, nil)
	at := h.service.Addresses().HTTP
	a := dialParallax(t, at, http.Header{"X-Agent-Id": {"parallax"}})
	a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"]}}`)
	a.wantFrame(`"registered"`)
	if first, err := registerCoven(t, openCoven(t, h.service.Addresses().GRPC), "coven"); first.GetWelcome() == nil {
		t.Fatalf("got %v, %v; want Welcome", first, err)
	}
	b, err := openWebSocket(t, at, "/ws/acp?agent_id=acp", nil)
	if err != nil {
		t.Fatal(err)
	}
	b.roundTrip(`{"v":1,"id":"c","kind":"capabilities","payload":{"domains":["y"]}}`, `"discover"`)
	b.roundTrip(`{"v":1,"id":"p","kind":"ping","payload":{}}`, `"pong"`)
	for _, id := range []string{"parallax", "coven", "acp"} {
		for _, c := range []struct{ most, want string }{{"3", id + " runs up to 3 tasks at once\n"}, {"0", id + " runs up to 1 task at once\n"}} {
			if code, out, _ := run(t, "config", "set-agent", id, "--max-concurrent", c.most, "--hub", "http://"+at); code != command.ExitDone || out != c.want {
				t.Errorf("%s set to %s: got %q and %d, want %q", id, c.most, out, code, c.want)
			}
		}
	}
}

func TestSetAgentRefusesAHeartbeatForADialectWithoutOne(t *testing.T) {
	h := newTestHub(t, nil)
	at := h.service.Addresses().HTTP
	a := dialParallax(t, at, http.Header{"X-Agent-Id": {"a"}})
	a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"]}}`)
	a.wantFrame(`"registered"`)
	b := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "b"}, Dialect: acp.Dialect})
	defer b.Close(nil)
	if err := b.Join(core.Card{ID: "b", Dialect: acp.Dialect}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		id, flag string
		code     int
		want     string
	}{
		{"a", "--heartbeat=5s", command.ExitDone, ""}, {"b", "--heartbeat=0s", command.ExitDone, ""}, {"b", "--max-concurrent=2", command.ExitDone, ""},
		{"b", "--heartbeat=5s", command.ExitUsage, "b speaks acp, which has no heartbeat interval"},
	} {
		code, _, stderr := h.run(t, "config", "set-agent", c.id, c.flag)
		if code != c.code || (stderr == "") != (c.want == "") || !strings.Contains(stderr, c.want) {
			t.Errorf("%s %s: got %d and %q, want %d and %q", c.id, c.flag, code, stderr, c.code, c.want)
		}
	}
}

func TestSettingsAreReloadedOnSIGHUP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("parallax: {heartbeat_interval: 20s}")
	hub := startHub(t, "--config", path)
	a := dialParallax(t, hub.http, nil)
	a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"]}}`)
	a.wantFrame(`"heartbeatInterval":20000`)

	reload := func(text, wantGet string) map[string]any {
		t.Helper()
		write(text)
		if err := hub.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		return hub.waitLog(t, wantGet)
	}
	reload("parallax: {heartbeat_interval: 30s}", "the configuration was reloaded")
	a.wantFrame(`"config_update"`, `"heartbeatInterval":30000`, `"reason":"the configuration was reloaded"`)
	const refused = "reloading the settings failed: the previous ones stay in effect"
	for text, why := range map[string]string{
		"parallax: {heartbeat_interval: soon}":                                "parallax.heartbeat_interval",
		"parallax: [":                                                         path,
		"parallax: {heartbeat_interval: 40s, interval: 1s}":                   "parallax.interval",
		"parallax: {heartbeat_interval: 40s, secrets: " + path + ".none}":     "parallax.secrets",
		"{parallax: {heartbeat_interval: 40s}, auth: {tokens: " + path + "}}": "auth.tokens",
	} {
		if got, _ := reload(text, refused)["error"].(string); !strings.Contains(got, why) {
			t.Errorf("%s: got the error %q, want it to name %s", text, got, why)
		}
		b := dialParallax(t, hub.http, nil)
		b.send(`{"type":"register","id":"r","payload":{"capabilities":["x"]}}`)
		b.wantFrame(`"heartbeatInterval":30000`)
	}
	later := reload("parallax: {heartbeat_interval: 30s}\nlimits: {hops: 3}", "some changed settings take effect at the next start")
	if got, _ := later["settings"].([]any); len(got) != 1 || got[0] != "limits.hops" {
		t.Errorf("got %v, want limits.hops named", later)
	}
	reload("parallax: {heartbeat_interval: 50s}", "the configuration was reloaded")
	a.wantFrame(`"config_update"`, `"heartbeatInterval":50000`) // and none of those that were refused
}
