package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestAnExecutionCallsItsWebhookIfAllowed(t *testing.T) {
	received := make(chan string, 1)
	target := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		received <- string(body)
	}))
	t.Cleanup(target.Close)
	execute := func(h *testHub) (int, string) {
		t.Helper()
		body := `{"agentId": "actor", "input": "` + h.key() + `", "webhook": {"url": "` + target.URL + `", "events": ["failed", "completed"]}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url()+service.ControlPath+"/executions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	for targets, want := range map[string]int{"none": http.StatusForbidden, "public": http.StatusBadRequest, "any": http.StatusAccepted} {
		t.Run(targets, func(t *testing.T) {
			h := newTestHub(t, func(c *config.Config) { c.Parallax.WebhookTargets = targets })
			h.startAgent(t, parallax.Dialect, "actor", 1)
			code, text := execute(h)
			if code != want {
				t.Fatalf("got %d %s, want %d", code, text, want)
			}
			if want != http.StatusAccepted {
				return
			}
			var begun struct{ ID string }
			var event struct{ Data struct{ ExecutionID string } }
			if err := json.Unmarshal([]byte(text), &begun); err != nil {
				t.Fatal(err)
			}
			if got := <-received; json.Unmarshal([]byte(got), &event) != nil || event.Data.ExecutionID != begun.ID {
				t.Errorf("got %s told, want the end of %s", got, begun.ID)
			}
		})
	}
}
