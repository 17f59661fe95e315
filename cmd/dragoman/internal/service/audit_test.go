package service_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// TestTheAuditSurvivesARestart reads the audit over HTTP, with a hub that was started twice on
// the same data, and checks the chain.
func TestTheAuditSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "tokens:\n  - principal: root\n    sha256: %x\n    operator: true\n", sha256.Sum256([]byte("root-secret-0123456789"))), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr, c.DataDir, c.Auth.Tokens = "", "127.0.0.1:0", "", filepath.Join(dir, "data"), tokens
	var body []byte
	for range 2 {
		s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		get := func(token string) (int, []byte) {
			t.Helper()
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addresses().HTTP+"/v1/audit", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, b
		}
		if status, b := get("a-wrong-token-0123456789"); status != http.StatusUnauthorized {
			t.Errorf("got %d and %s, want a refusal", status, b)
		}
		_, body = get("root-secret-0123456789")
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.Stop(stop, "test"); err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
		cancel()
	}
	lines := bytes.Split(bytes.TrimSuffix(body, []byte("\n")), []byte("\n"))
	if err := coretest.VerifyAudit(slices.Values(lines)); err != nil {
		t.Errorf("got %v, want a chain over both hubs", err)
	}
	var acts []string
	for _, line := range lines {
		for _, act := range []string{"start", "connect", "stop"} {
			if bytes.Contains(line, []byte(`"act":"`+act+`"`)) {
				acts = append(acts, act)
			}
		}
	}
	if got, want := strings.Join(acts, " "), "start connect connect stop start connect connect"; got != want {
		t.Errorf("got %s in %s, want %s", got, body, want)
	}
	if bytes.Contains(body, []byte("0123456789")) || !bytes.Contains(body, []byte(`"object":"http 127.0.0.1","outcome":"unauthenticated"`)) {
		t.Errorf("got %s, want the refusal and no credential", body)
	}
}
