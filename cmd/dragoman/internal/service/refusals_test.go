package service_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// Every path over HTTP refuses a request by its head: the body of each of these never ends.
func TestEveryPathRefusesBeforeTheBody(t *testing.T) {
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "", "127.0.0.1:0", "127.0.0.1:0"
	c.Auth.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, fmt.Appendf(nil, "tokens:\n  - {principal: ana, sha256: %x}\n", sha256.Sum256([]byte("anas-secret-0123456789"))), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(stop, "test"); err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
	}()
	for _, path := range []string{
		"/v1/tasks", "/v1/agents/bob", "/acp", "/a2a/bob", "/a2a/bob/message:send", "/mcp", "/mcp/wrong", "/ws/native", "/ws/pi", "/metrics", "/nothing",
		"", // the address of pi
	} {
		for _, credential := range []string{"", "Authorization: Bearer wrong\r\n", "X-API-Key: wrong\r\n"} {
			at := s.Addresses().HTTP
			if path == "" {
				at = s.Addresses().Pi
			}
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetDeadline(time.Now().Add(time.Minute))
			fmt.Fprintf(conn, "POST /%s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", strings.TrimPrefix(path, "/"), credential)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("%s with %q: got %v, want an answer before the end of the body", path, credential, err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") || len(body) == 0 {
				t.Errorf("%s with %q: got %d, %v and %s, want 401 with WWW-Authenticate and why", path, credential, resp.StatusCode, resp.Header, body)
			}
			conn.Close()
		}
	}
}
