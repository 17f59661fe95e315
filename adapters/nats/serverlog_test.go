package nats

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatTheServerRepeatsIsSaidOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &serverLog{log: slog.New(slog.NewTextHandler(&out, nil)), said: map[string]*repeated{}}
		for id := range 30 {
			l.Errorf("127.0.0.1:%d - rid:%d - TLS route handshake error: bad certificate", 40000+id, id)
			time.Sleep(time.Second)
		}
		l.Errorf("JetStream failed to store a message on stream %q", "hub-1-log")
		l.Errorf("JetStream failed to store a message on stream %q", "hub-2-log")
		time.Sleep(time.Minute)
		l.Errorf("127.0.0.1:40030 - rid:30 - TLS route handshake error: bad certificate")
		got := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(got) != 4 {
			t.Fatalf("got %q, want the first of 30 alike, two of other streams, and the first a minute later", got)
		}
		if want := "rid:30 - TLS route handshake error: bad certificate (29 more of these since)"; !strings.Contains(got[3], want) {
			t.Errorf("got %q, want %q", got[3], want)
		}
	})
}
