package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatWasSetOfAnAgentHoldsOverARestart(t *testing.T) {
	dir := t.TempDir()
	live := func(play func(t *testing.T, at string, a *rawAgent)) {
		t.Helper()
		t.Run("a hub", func(t *testing.T) {
			s := newStage(t, func(c *Config) { c.DataDir = dir })
			at := s.service.bound.HTTP
			a := dialRaw(t, at, http.Header{"X-Agent-Id": {"a"}})
			a.say(`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"maxConcurrentTasks":5}}}`)
			play(t, at, a)
		})
	}
	set := func(t *testing.T, at string, args ...string) {
		t.Helper()
		if out, code := command(t, append(append([]string{"config", "set-agent", "a"}, args...), "--hub", "http://"+at)...); code != exitDone {
			t.Fatalf("got %q and %d, want it set", out, code)
		}
	}
	live(func(t *testing.T, at string, a *rawAgent) {
		a.hears(`"registered"`, `"heartbeatInterval":10000`)
		set(t, at, "--max-concurrent", "3", "--heartbeat", "5s")
		a.hears(`"config_update"`, `"heartbeatInterval":5000`, `"maxConcurrentTasks":3`)
	})
	live(func(t *testing.T, at string, a *rawAgent) {
		a.hears(`"registered"`, `"heartbeatInterval":5000`)
		if out, _ := command(t, "agents", "--json", "--hub", "http://"+at); !strings.Contains(out, `"max_concurrent": 3`) {
			t.Errorf("got %s, want three at once", out)
		}
		set(t, at, "--max-concurrent", "0", "--heartbeat", "0s")
	})
	live(func(_ *testing.T, _ string, a *rawAgent) { a.hears(`"registered"`, `"heartbeatInterval":10000`) })
	if err := os.WriteFile(filepath.Join(dir, termsFile), []byte(`{"agents":{"a":{},"a":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := termsIn(dir); err == nil || !strings.Contains(err.Error(), termsFile) {
		t.Errorf("a file that is broken: got %v, want it named", err)
	}
	// What cannot be kept is told to who sets it.
	_ = os.Remove(filepath.Join(dir, termsFile))
	keep, _, err := termsIn(dir)
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, termsFile), 0o700)
	}
	if err == nil {
		err = keep(nil)
	}
	if err == nil {
		t.Error("got no error, want that it could not be kept")
	}
	if _, _, err := termsIn(""); err != nil {
		t.Errorf("no data directory: got %v, want nothing kept", err)
	}
}
