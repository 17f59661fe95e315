package e2e

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestMethodNotAllowedIsAnsweredInTheFormOfEachInterface(t *testing.T) {
	at := "http://" + newTestHub(t, nil).service.Addresses().HTTP
	for path, want := range map[string]struct{ allow, says string }{
		service.ACPPath:                 {"GET, POST", `"kind":"error"`},
		"/mcp":                          {"GET, POST", `"jsonrpc":"2.0"`},
		"/v1/agents":                    {"GET", `"code":"unsupported"`},
		service.ControlPath + "/agents": {"GET", `"code":"UNSUPPORTED"`},
		service.ParallaxPath:            {"GET", `"code":"unsupported"`},
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
