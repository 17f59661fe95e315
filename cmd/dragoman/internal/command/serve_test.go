package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func TestTheReadyLineHasTheAddressesThatAreSet(t *testing.T) {
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

func TestServeStopsIfStdinCannotBeOpened(t *testing.T) {
	settings := config.Local()
	settings.Stdio, settings.ReadyFile = true, filepath.Join(t.TempDir(), "ready.json")
	broken := errors.New("stdin is broken")
	err := serve(t.Context(), settings, Streams{Err: io.Discard}, func() (*stdio.Conn, error) { return nil, broken }, nil)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of stdin", err)
	}
	var at service.Addresses
	text, err := os.ReadFile(settings.ReadyFile)
	if err := errors.Join(err, json.Unmarshal(text, &at)); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", at.HTTP); err == nil {
		conn.Close()
		t.Errorf("got a listener at %s, want none", at.HTTP)
	}
}

func TestAHumanLogHasNoColoursOutsideATerminal(t *testing.T) {
	var file bytes.Buffer
	newLog(&file, "info", "human").Info("the hub is ready", "grpc", "127.0.0.1:50051")
	if got := file.String(); !strings.Contains(got, "the hub is ready grpc=127.0.0.1:50051") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want a readable line without escape sequences", got)
	}
}

func TestAHubThatIsTakenOverAgainAndAgainWaitsLongerAndLonger(t *testing.T) {
	var got []string
	pause := time.Duration(0)
	for _, lived := range []time.Duration{time.Hour, time.Second, 0, 0, 0, 0, 0, 0, 0, time.Hour, 0} {
		pause = pauseAfter(lived, pause)
		got = append(got, pause.String())
	}
	if got, want := strings.Join(got, " "), "0s 250ms 500ms 1s 2s 4s 8s 10s 10s 0s 250ms"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
