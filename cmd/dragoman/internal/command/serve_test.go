package command

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func TestTheHubSaysWhereItIsReadyAndNothingOfWhatIsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		at   service.Addresses
		dir  string
		want string
	}{
		{service.Addresses{GRPC: "a:1", HTTP: "a:2", Pi: "a:3"}, "data", "[grpc a:1 http a:2 pi a:3 data data version " + service.Version + "]"},
		{service.Addresses{PiSocket: "/run/pi"}, "", "[pi_socket /run/pi version " + service.Version + "]"},
	} {
		if got := fmt.Sprint(readyLine(tt.at, config.Config{DataDir: tt.dir})); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

// What was started before stdin turns out to be unusable is stopped.
func TestAHubThatCannotOpenStdinStops(t *testing.T) {
	settings := config.Local()
	settings.Stdio, settings.ReadyFile = true, filepath.Join(t.TempDir(), "ready.json")
	broken := errors.New("stdin is broken")
	err := serve(t.Context(), settings, Streams{Err: io.Discard}, func() (*stdio.Conn, error) { return nil, broken }, nil)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want what is wrong with stdin", err)
	}
	at, err := service.AwaitReady(t.Context(), settings.ReadyFile)
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", at.HTTP); err == nil {
		conn.Close()
		t.Errorf("got a listener at %s still, want none", at.HTTP)
	}
}
