package nats_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
)

// More reads at the same time than a server can answer would be taken for a server that is silent.
func TestAReadWaitsUntilFewOthersRead(t *testing.T) {
	t.Parallel()
	j := opened(t, nats.Options{Dir: t.TempDir()})
	records := taskRecords("one")
	if err := j.Append(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	release := j.HoldReads()
	gone := errors.New("the reader has gone")
	ctx, leave := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, gone)
	defer leave()
	if events, err := j.Read(ctx, records[0].Task, 0, 0); !errors.Is(err, gone) {
		t.Errorf("while others read: got %d events and %v, want that it waited until %v", len(events), err, gone)
	}
	read := make(chan error)
	go func() {
		_, err := j.Read(t.Context(), records[0].Task, 0, 0)
		read <- err
	}()
	release()
	if err := <-read; err != nil {
		t.Errorf("once nobody else reads: got %v, want the task", err)
	}
}
