package peer_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/peer"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// waitingJournal lets readers wait.
type waitingJournal struct {
	*journal.Memory
	released <-chan struct{}
}

func (j *waitingJournal) Read(ctx context.Context, id core.TaskID, after uint64, limit int) ([]core.Event, error) {
	select {
	case <-j.released:
		return j.Memory.Read(ctx, id, after, limit)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestAHubMayAskForAsManyTasksAsItHas(t *testing.T) {
	const many = 6000
	read := make(chan struct{})
	opts := hub.Options{Peers: &peer.Peers{}, Journal: &waitingJournal{journal.NewMemory(journal.Retention{}), read}}
	peers := opts.Peers.(*peer.Peers)
	a := coretest.NewHub(t, opts)
	a.HubUp("b", 1)
	one, other := coretest.Pipe[[]byte, []byte](1000)
	b := peers.Add(a, peer.Options{Name: "b", Log: slog.New(slog.DiscardHandler)})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t.Log(b.Run(ctx, one))
	}()
	defer func() { cancel(); <-ended }()

	frames := []string{`h{"version":1}`}
	for i := range many {
		frames = append(frames, fmt.Sprintf("f01234567-0123-7123-8123-%012x", i))
	}
	frames = append(frames, frames[1:]...) // some ids come twice, as after another loss
	for _, f := range append(frames, "q\x01"+`{"by":{"id":"ann"},"what":"none"}`) {
		if err := other.Send(t.Context(), []byte(f)); err != nil {
			t.Fatal(err)
		}
	}
	unknown := 0
	for begun := false; unknown < many; {
		frame, err := other.Receive(t.Context())
		if err != nil {
			t.Fatalf("after %d answers: %v, want %d", unknown, err, many)
		}
		switch {
		case frame[0] == 'u':
			unknown++
		case frame[0] == 'a' && !begun: // all were asked for
			begun = true
			close(read)
		}
	}
}
