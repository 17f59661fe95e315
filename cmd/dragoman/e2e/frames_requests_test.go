package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/native"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// post posts JSON to the hub and reads the whole answer.
func (h *testHub) post(t *testing.T, path, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.url()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
		t.Fatalf("%s: got %s, %v and %s, want an answer", path, resp.Status, err, text)
	}
	return string(text)
}

// A requester without a connection of its own is shown request by request, as in testdata/frames.
func TestTheFramesOfATaskShowRequestsOverHTTPAndGRPC(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  func(t *testing.T, h *testHub)
	}{
		{"REST wait", func(t *testing.T, h *testHub) {
			h.post(t, "/v1/tasks?wait=true", `{"to":"guide","content":"look it up"}`)
		}},
		{"Coven client", func(t *testing.T, h *testHub) {
			person := connectCovenClient(t, h.service.Addresses().GRPC)
			person.send("guide", "look it up")
			stream := person.open("guide", "")
			for {
				m, err := stream.stream.Recv()
				if err != nil {
					t.Fatal(err)
				}
				if _, is := m.GetPayload().(*wire.ClientStreamEvent_Done); is {
					break
				}
			}
			stream.stop()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newTestHub(t, keepFrames)
			h.startAgentWith(t, native.Dialect, "guide", h.reportEverything)
			tt.ask(t, h)
			h.wantFrames(t, tt.name+"-native")
		})
	}
}
