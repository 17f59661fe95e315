package service

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAHubThatStopsIsNotReadyAtAnyOfItsPaths(t *testing.T) {
	c := config.Local()
	s, err := Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		s.draining.Store(false)
		if err := s.Stop(t.Context(), "the test is over"); err != nil {
			t.Error(err)
		}
	}()
	s.draining.Store(true)
	for path, want := range map[string]string{"/readyz": "503 stopping\n", "/health/ready": "503 stopping", "/health": "200 OK"} {
		resp, err := http.Get("http://" + s.bound.HTTP + path) //nolint:noctx // it answers at once
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if got := fmt.Sprint(resp.StatusCode, " ", string(body)); err != nil || got != want {
			t.Errorf("%s: got %q and %v, want %q", path, got, err, want)
		}
	}
}
