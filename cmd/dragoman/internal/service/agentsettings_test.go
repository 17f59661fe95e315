package service_test

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// settingsName is the file with the settings of agents.
const settingsName = "terms.json"

func TestABrokenAgentSettingsFileStopsTheStart(t *testing.T) {
	c := config.Local()
	c.DataDir = t.TempDir()
	if err := os.WriteFile(filepath.Join(c.DataDir, settingsName), []byte(`{"agents":{"a":{},"a":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil); err == nil || !strings.Contains(err.Error(), settingsName) {
		t.Errorf("got %v, want an error that names the file", err)
	}
}

func TestAnAgentSettingThatCannotBeStoredIsAnError(t *testing.T) {
	for name, broken := range map[string]bool{"a directory in place of the file": true, "no data directory": false} {
		t.Run(name, func(t *testing.T) {
			c := config.Local()
			if broken {
				c.DataDir = t.TempDir()
			}
			s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Stop(t.Context(), "the test is over"); err != nil {
					t.Error(err)
				}
			}()
			if broken {
				if err := os.Mkdir(filepath.Join(c.DataDir, settingsName), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			agent := s.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
			defer agent.Close(nil)
			if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, "http://"+s.Addresses().HTTP+"/v1/agents/a", strings.NewReader(`{"max_concurrent":2}`))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, _ := io.ReadAll(resp.Body); (resp.StatusCode >= http.StatusBadRequest) != broken {
				t.Errorf("got %s %s, want an error: %t", resp.Status, body, broken)
			}
		})
	}
}
