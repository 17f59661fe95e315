package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAgentSettingsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	live := func(play func(t *testing.T, at string, a *parallaxConn)) {
		t.Helper()
		t.Run("a hub", func(t *testing.T) {
			h := newTestHub(t, func(c *config.Config) { c.DataDir = dir })
			at := h.service.Addresses().HTTP
			a := dialParallax(t, at, http.Header{"X-Agent-Id": {"a"}})
			a.send(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"maxConcurrentTasks":5}}}`)
			play(t, at, a)
		})
	}
	set := func(t *testing.T, at string, args ...string) {
		t.Helper()
		if code, out, _ := run(t, append(append([]string{"config", "set-agent", "a"}, args...), "--hub", "http://"+at)...); code != command.ExitDone {
			t.Fatalf("got %q and %d, want it set", out, code)
		}
	}
	live(func(t *testing.T, at string, a *parallaxConn) {
		a.wantFrame(`"registered"`, `"heartbeatInterval":10000`)
		set(t, at, "--max-concurrent", "3", "--heartbeat", "5s")
		a.wantFrame(`"config_update"`, `"heartbeatInterval":5000`, `"maxConcurrentTasks":3`)
	})
	live(func(t *testing.T, at string, a *parallaxConn) {
		a.wantFrame(`"registered"`, `"heartbeatInterval":5000`)
		if _, out, _ := run(t, "agents", "--json", "--hub", "http://"+at); !strings.Contains(out, `"max_concurrent": 3`) {
			t.Errorf("got %s, want three at once", out)
		}
		set(t, at, "--max-concurrent", "0", "--heartbeat", "0s")
	})
	live(func(_ *testing.T, _ string, a *parallaxConn) {
		a.wantFrame(`"registered"`, `"heartbeatInterval":10000`)
	})
}
