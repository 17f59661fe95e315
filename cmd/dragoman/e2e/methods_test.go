package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestMethodNotAllowedIsAnsweredInTheFormOfEachInterface(t *testing.T) {
	at := "http://" + newTestHub(t, nil).service.Addresses().HTTP
	for path, want := range map[string]struct{ allow, says string }{
		service.ACPPath:      {"GET, POST, OPTIONS", `"kind":"error"`},
		"/mcp":               {"GET, POST, OPTIONS", `"jsonrpc":"2.0"`},
		"/v1/agents":         {"GET, HEAD, OPTIONS", `"code":"unsupported"`},
		service.ParallaxPath: {"GET, HEAD, OPTIONS", `"code":"unsupported"`},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, at+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if allow := resp.Header.Get("Allow"); err != nil || resp.StatusCode != http.StatusMethodNotAllowed || allow != want.allow || !strings.Contains(string(printed), want.says) {
			t.Errorf("DELETE %s: got %s, Allow %q, %s and %v, want 405, Allow %q and %s", path, resp.Status, allow, printed, err, want.allow, want.says)
		}
	}
}

// HEAD has the status and the headers of GET, and OPTIONS tells the methods.
func TestHeadAndOptionsAreAnsweredWhereGetIs(t *testing.T) {
	h := newTestHub(t, nil)
	defer joinAnswerer(t, h.service.Addresses().GRPC, "answerer")()
	do := func(method, path string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, h.url()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		// A transport of its own: a connection whose HEAD has a body would not be used again.
		resp, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if streams[path] && method == http.MethodGet {
			return resp, ""
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	for path, allow := range map[string]string{
		"/": "GET, HEAD, OPTIONS", "/console": "GET, HEAD, OPTIONS", "/console/app.js": "GET, HEAD, OPTIONS", service.HealthPath: "GET, HEAD, OPTIONS", service.ReadyPath: "GET, HEAD, OPTIONS",
		"/health": "GET, HEAD, OPTIONS", "/health/ready": "GET, HEAD, OPTIONS", service.MetricsPath: "GET, HEAD, OPTIONS",
		"/v1/hub": "GET, HEAD, OPTIONS", "/v1/openapi.json": "GET, HEAD, OPTIONS", "/v1/agents": "GET, HEAD, OPTIONS", "/v1/agents/answerer": "GET, HEAD, PATCH, OPTIONS",
		"/v1/tasks": "GET, HEAD, POST, OPTIONS", "/v1/tasks/none": "GET, HEAD, OPTIONS", "/v1/events": "GET, HEAD, OPTIONS", "/v1/nothing": "", "/nothing": "",
		service.ParallaxPath: "GET, HEAD, OPTIONS",
	} {
		get, _ := do(http.MethodGet, path)
		head, body := do(http.MethodHead, path)
		for _, changes := range []string{"Date", "Transfer-Encoding"} {
			get.Header.Del(changes)
			head.Header.Del(changes)
		}
		if path == service.MetricsPath || path == "/v1/hub" { // their figures and times change
			get.Header.Del("Content-Length")
			head.Header.Del("Content-Length")
		}
		if diff := cmp.Diff(get.Header, head.Header); head.StatusCode != get.StatusCode || body != "" || diff != "" {
			t.Errorf("HEAD %s: got %s with %d bytes and (-GET +HEAD):\n%s\nwant %s without a body", path, head.Status, len(body), diff, get.Status)
		}
		options, body := do(http.MethodOptions, path)
		want := http.StatusNoContent
		if allow == "" {
			want = http.StatusNotFound
		}
		if got := options.Header.Get("Allow"); options.StatusCode != want || got != allow || allow != "" && body != "" {
			t.Errorf("OPTIONS %s: got %s, Allow %q and %q, want %d and Allow %q", path, options.Status, got, body, want, allow)
		}
	}
	for _, path := range []string{service.ACPPath, "/mcp", "/mcp/token"} { // whose GET takes what waits
		head, _ := do(http.MethodHead, path)
		options, _ := do(http.MethodOptions, path)
		if got, can := head.Header.Get("Allow"), options.Header.Get("Allow"); head.StatusCode != http.StatusMethodNotAllowed || got != "GET, POST, OPTIONS" || can != got || options.StatusCode != http.StatusNoContent {
			t.Errorf("%s: got HEAD %s and OPTIONS %s, Allow %q and %q, want 405 and 204 with GET, POST, OPTIONS", path, head.Status, options.Status, got, can)
		}
	}
}

// streams are the paths whose GET does not end.
var streams = map[string]bool{"/v1/events": true}
