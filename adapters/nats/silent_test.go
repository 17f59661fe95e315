package nats_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

func TestAServerThatDoesNotAnswerIsUnreachableForReadersWhoMayTryAgain(t *testing.T) {
	tier.Full(t, "it waits until a read gives up after five seconds")
	t.Parallel()
	s := external(t)
	var log bytes.Buffer
	j := opened(t, nats.Options{URL: s.ClientURL(), Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	records := taskRecords("one")
	if err := j.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	s.Shutdown()
	s.WaitForShutdown()
	_, err := j.Read(t.Context(), records[0].Task, 0, 0)
	var f *core.Fault
	if !errors.As(err, &f) || f.Code != core.CodeUnreachable || !f.Retryable || !strings.Contains(f.Message, "try again") {
		t.Errorf("got %v, want unreachable, to be tried again", err)
	}
	if n := strings.Count(log.String(), "the journal cannot be read"); n != 1 {
		t.Errorf("got %q logged, want it once", log.String())
	}
}
