package grpcserver_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// bare connects to addr with plain HTTP/2 frames, so that a test controls the answers.
func bare(t *testing.T, addr string) (*http2.Framer, net.Conn) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(testTimeout))
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	return f, conn
}

func TestAPeerThatAnswersNoPingIsDisconnected(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, grpcserver.Options{PingEvery: time.Second, PingTimeout: 10 * time.Millisecond}, nothing)
	f, _ := bare(t, addr)
	pings := 0
	for {
		frame, err := f.ReadFrame()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got an open connection after %v, want it closed", testTimeout)
		}
		if err != nil {
			break
		}
		if p, ok := frame.(*http2.PingFrame); ok && !p.IsAck() {
			pings++
		}
	}
	if pings != 1 {
		t.Errorf("got %d pings, want 1", pings)
	}
}

func TestAClientThatPingsTooOftenIsDisconnected(t *testing.T) {
	for _, c := range []struct {
		name string
		min  time.Duration
		want bool // disconnected
	}{
		{"slower than the limit", time.Nanosecond, false},
		{"faster than the limit", time.Hour, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, addr := serve(t, grpcserver.Options{MinClientPing: c.min}, nothing)
			f, _ := bare(t, addr)
			const pings = 5
			for i := range pings {
				if err := f.WritePing(false, [8]byte{byte(i)}); err != nil && !c.want { // else it may be disconnected already
					t.Fatal(err)
				}
			}
			disconnected := false
			for answers := 0; answers < pings && !disconnected; {
				frame, err := f.ReadFrame()
				if err != nil {
					break
				}
				switch frame := frame.(type) {
				case *http2.PingFrame:
					answers++
				case *http2.GoAwayFrame:
					disconnected = frame.ErrCode == http2.ErrCodeEnhanceYourCalm
				}
			}
			if disconnected != c.want {
				t.Errorf("disconnected: got %v, want %v", disconnected, c.want)
			}
		})
	}
}
