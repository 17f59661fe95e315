package peer_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

func TestAnInquiryThatNobodyWaitsForIsGivenUp(t *testing.T) {
	all := connected(t, "a", "b")
	slow, quick := rpc.Method[string, bool]("test.slow"), rpc.Method[string, bool]("test.quick")
	slow.Answer(all["b"].Hub, func(ctx context.Context, _ core.Principal, _ string) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	})
	quick.Answer(all["b"].Hub, func(context.Context, core.Principal, string) (bool, error) { return true, nil })
	var waiting sync.WaitGroup
	for range 16 {
		waiting.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := slow.Ask(ctx, all["a"].Hub, "b", core.Principal{}, ""); err == nil {
				t.Error("got an answer of what stands still")
			}
		})
	}
	waiting.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := quick.Ask(ctx, all["a"].Hub, "b", core.Principal{}, ""); err != nil {
		t.Errorf("got %v, want the answer to what somebody waits for", err)
	}
}
