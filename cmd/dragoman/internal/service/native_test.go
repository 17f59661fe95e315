package service_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// What a native peer sends is refused with the names that it gave, and its connection goes on.
func TestANativePeerIsToldWhichFrameWasRefused(t *testing.T) {
	c := config.Local()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr, c.PiSocket = "", "127.0.0.1:0", "", ""
	c.Native.FrameBytes = 2000
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Stop(t.Context(), "the test is over"); err != nil {
			t.Error(err)
		}
	}()
	at := "http://" + s.Addresses().HTTP + service.NativePath
	conn, _, err := websocket.Dial(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	hears := func(parts ...string) {
		t.Helper()
		_, frame, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			if !strings.Contains(string(frame), part) {
				t.Errorf("got %s, want %s in it", frame, part)
			}
		}
	}
	hears(`{"hello":`, `"frame_bytes":2000`)
	for _, tt := range []struct {
		typ   websocket.MessageType
		frame string
		want  []string
	}{
		{websocket.MessageText, `{"event":{"task":"t","id":"9","kind":"text","body":{"text":"` + strings.Repeat("x", 2000) + `"}}}`, []string{`"id":"9"`, `"task":"t"`, `"too_large"`, "over the limit of 2000", "send less, or in several frames"}},
		{websocket.MessageBinary, `{"tools":{"id":"1"}}`, []string{`"invalid"`, "binary message; send text"}},
		{websocket.MessageText, `{"event":{"task":"t","id":"10","kind":"done","body":{}}}`, []string{`"id":"10"`, `"task":"t"`, `"not_authorized"`}},
		{websocket.MessageText, `{"tools":{"id":"2"}}`, []string{`{"result":{"id":"2","tools":`}},
	} {
		if err := conn.Write(t.Context(), tt.typ, []byte(tt.frame)); err != nil {
			t.Fatal(err)
		}
		hears(tt.want...)
	}
}
