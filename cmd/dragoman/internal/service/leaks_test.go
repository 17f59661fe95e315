package service_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// written is a log for concurrent use.
type written struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// TestNoCredentialIsStoredOrLogged gives the hub credentials in every place that takes one, good
// ones, bad ones and such that it is to use itself, and searches its files and its log for them.
func TestNoCredentialIsStoredOrLogged(t *testing.T) {
	dir := t.TempDir()
	const good, bad, asks, held = "good-0123456789-secret", "bad-0123456789-secret", "asks-0123456789-secret", "held-0123456789-secret"
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr, c.DataDir = "", "127.0.0.1:0", "", filepath.Join(dir, "data")
	c.A2A.PushTargets = "any"
	c.Auth.Tokens = filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, fmt.Appendf(nil, "tokens:\n  - {principal: ana, operator: true, sha256: %x}\n  - {principal: bob, sha256: %x}\n", sha256.Sum256([]byte(good)), sha256.Sum256([]byte(asks))), 0o600); err != nil {
		t.Fatal(err)
	}
	var log written
	s, err := service.Start(t.Context(), c, slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), nil)
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string, want int, header ...string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addresses().HTTP+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("A2A-Version", "1.0")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if text, _ := io.ReadAll(resp.Body); resp.StatusCode != want || want >= 400 && bytes.Contains(text, []byte("0123456789")) || want < 400 && bytes.Contains(text, []byte(`"error"`)) {
			t.Errorf("%s %s %v: got %d and %s, want %d", method, path, header, resp.StatusCode, text, want)
		}
	}
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, token := range []string{good, bad} {
		ok := func(status int) int {
			if token == bad {
				return status
			}
			return http.StatusOK
		}
		send("GET", "/v1/agents", "", ok(401), "Authorization", "Bearer "+token)
		send("GET", "/v1/agents", "", ok(401), "Authorization", "ApiKey "+token)
		send("GET", "/v1/agents", "", ok(401), "X-API-Key", token)
		send("POST", "/mcp/"+token, ping, ok(401))
		send("POST", "/mcp", ping, ok(401), "Authorization", "Bearer "+token)
		conn, _, err := websocket.Dial(t.Context(), "ws://"+s.Addresses().HTTP+service.NativePath, &websocket.DialOptions{
			Subprotocols: []string{"dragoman", "dragoman.token." + base64.RawURLEncoding.EncodeToString([]byte(token))},
		})
		if (err == nil) != (token == good) {
			t.Errorf("subprotocol: got %v with the token %s", err, token)
		}
		if conn != nil {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"call":{"id":"j","act":"join","command":{"card":{"id":"ana","domains":["d"]}}}}`)); err != nil {
				t.Fatal(err)
			}
			for joined := false; !joined; {
				_, frame, err := conn.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				joined = bytes.Contains(frame, []byte(`"id":"j"`))
			}
			defer conn.CloseNow()
		}
	}
	key := []string{"Authorization", "Bearer " + asks}
	send("POST", "/a2a/ana", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"returnImmediately":true,
		"taskPushNotificationConfig":{"url":"http://127.0.0.1:1/","token":"`+held+`","authentication":{"scheme":"Bearer","credentials":"`+held+`"}}}}}`, 200, key...)
	stop, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // its tasks run on
	defer cancel()
	if err := s.Stop(stop, "test"); err != nil {
		t.Logf("stopping: %v", err)
	}
	search := func(where string, data []byte) {
		for _, secret := range []string{good, bad, asks, held} {
			for _, form := range []string{secret, base64.RawURLEncoding.EncodeToString([]byte(secret))} {
				if bytes.Contains(data, []byte(form)) {
					t.Errorf("got %q in %s, want it nowhere", form, where)
				}
			}
		}
	}
	search("the log", log.b.Bytes())
	files := 0
	if err := filepath.WalkDir(c.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		search(path, data)
		files++
		return err
	}); err != nil || files == 0 {
		t.Errorf("searching the data: got %v after %d files", err, files)
	}
}
