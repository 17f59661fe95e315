package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// A client gets the command events that its address asks for, or else those of the setting.
func TestPiLifecycleEventsFollowTheQueryOrTheSetting(t *testing.T) {
	for _, tt := range []struct {
		setting, address string
		want             bool
	}{{"all", "", true}, {"all", "?lifecycle=own", false}, {"own", "", false}, {"own", "?lifecycle=all", true}, {"session", "", false}} {
		h := newTestHub(t, func(c *config.Config) { c.Pi.Lifecycle = tt.setting })
		base := &servedHub{Client: &client.Client{URL: h.url()}}
		conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: base.URL}, "/ws/pi"+tt.address, nil, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		frames := make(chan pitest.Frame, 100)
		watcher, err := pitest.Connect(t.Context(), conn, func(f pitest.Frame) { frames <- f })
		if err != nil {
			t.Fatal(err)
		}
		dialPi(t, base).do(map[string]any{"id": "theirs", "type": "list_sessions"})
		// Events of others come before those of the client's own later commands.
		if _, err := watcher.Do(t.Context(), map[string]any{"type": "list_sessions"}); err != nil {
			t.Fatal(err)
		}
		watcher.Close()
		close(frames)
		received := 0
		for f := range frames {
			if strings.HasPrefix(f.Type, "command_") && strings.Contains(string(f.Raw), `"theirs"`) {
				received++
			}
		}
		if want := map[bool]int{true: 3}[tt.want]; received != want {
			t.Errorf("setting %s, address %q: got %d lifecycle events of another, want %d", tt.setting, tt.address, received, want)
		}
	}
}

func TestAnUnknownPiLifecycleIsRefused(t *testing.T) {
	h := newTestHub(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url()+"/ws/pi?lifecycle=mine", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Upgrade", "websocket")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if want := "lifecycle=\"mine\" is not known: ask for all, session or own\n"; err != nil || answer.StatusCode != http.StatusBadRequest || string(body) != want {
		t.Errorf("got %d %q (%v), want 400 %q", answer.StatusCode, body, err, want)
	}
}
