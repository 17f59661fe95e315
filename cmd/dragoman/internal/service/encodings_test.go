package service_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// An encoding that the hub does not understand is refused and named at every door; what an editor puts before a
// text is not.
func TestABodyIsUTF8AsItIs(t *testing.T) {
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "", "127.0.0.1:0", ""
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(stop, "test"); err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
	})
	inUTF16 := func(text string) string {
		var b []byte
		for _, unit := range utf16.Encode([]rune(text)) {
			b = binary.LittleEndian.AppendUint16(b, unit)
		}
		return string(b)
	}
	gzipped := func(text string) string {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	for door, one := range map[string]struct{ path, body string }{
		"REST":     {"/v1/tasks", `{"to":"nobody","content":"x"}`},
		"A2A":      {"/a2a/nobody/message:send", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}`},
		"A2A, RPC": {"/a2a/nobody", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}}`},
		"ACP":      {"/acp", `{"v":1,"id":"q","from":"kit","to":"nobody","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"x"}}`},
		"MCP":      {"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
	} {
		post := func(text, media, encoding string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addresses().HTTP+one.path, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range map[string]string{"Content-Type": media, "Content-Encoding": encoding, "Accept": "application/json, text/event-stream", "A2A-Version": "1.0"} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(answer)
		}
		const media = "application/json"
		status, plain := post(one.body, media, "")
		if status == http.StatusUnsupportedMediaType || status == http.StatusBadRequest {
			t.Fatalf("%s: got %d and %s for the body as it is", door, status, plain)
		}
		for name, text := range map[string]string{"a byte order mark": "\ufeff" + one.body, "its line end": one.body + "\r\n"} {
			if got, answer := post(text, media, ""); got != status {
				t.Errorf("%s, with %s: got %d and %s, want %d as without", door, name, got, answer, status)
			}
		}
		if got, answer := post(one.body, media+"; charset=UTF-8", "identity"); got != status {
			t.Errorf("%s, said to be as it is: got %d and %s, want %d", door, got, answer, status)
		}
		for _, refused := range []struct{ text, media, encoding, names string }{
			{gzipped(one.body), media, "gzip", "gzip"}, {one.body, media, "br", "br"}, {inUTF16(one.body), media + "; charset=utf-16", "", "utf-16"},
			{inUTF16(one.body), media, "", "UTF-16"}, {"\xff\xfe" + inUTF16(one.body), media, "", "UTF-16"},
		} {
			if got, answer := post(refused.text, refused.media, refused.encoding); got != http.StatusUnsupportedMediaType || !strings.Contains(answer, refused.names) {
				t.Errorf("%s, %q %q: got %d and %s, want 415 with %s", door, refused.media, refused.encoding, got, answer, refused.names)
			}
		}
	}
}
