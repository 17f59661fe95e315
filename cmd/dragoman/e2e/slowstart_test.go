package e2e

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// A NATS server that takes the connection and says nothing keeps a hub from its journal, as a large journal
// does.
func TestAHubThatStartsForLongerThanAMomentSaysSo(t *testing.T) {
	tier.Full(t, "it waits until a hub gives up its journal")
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	at := fixedAddr(t)
	hub := program(t, "serve", "--grpc-addr", "", "--pi-addr", "", "--http-addr", at, "--nats-url", "nats://"+silent.Addr().String())
	if err := hub.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hub.Wait() }() // it gives up
	for path, want := range map[string]string{"/healthz": "200 OK: ok\n", "/readyz": "503 Service Unavailable: this hub starts: it reads its journal\n"} {
		var got string
		for begin := time.Now(); got == "" && time.Since(begin) < watchdog; time.Sleep(10 * time.Millisecond) {
			r, err := http.Get("http://" + at + path) //nolint:noctx // the hub ends the request
			if err != nil {
				continue // it does not listen yet
			}
			text, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			got = r.Status + ": " + string(text)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}
