package link_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// writers returns the number of writer loops in the bubble of the test: those of a test before may be about to end.
func writers() (n int) {
	stacks := make([]byte, 1<<20)
	_, bubble, _ := strings.Cut(string(stacks[:runtime.Stack(stacks, false)]), "synctest bubble ")
	bubble, _, _ = strings.Cut(bubble, "]")
	for one := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(one, "synctest bubble "+bubble+"]") && strings.Contains(one, "]).write(") {
			n++
		}
	}
	return n
}

func TestALinkThatSeldomSendsHasNoWriterLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(8)
		l := run(t, hub, link.Options{}, nil, nil)
		synctest.Wait()
		if got := writers(); got != 0 {
			t.Errorf("writer loops before the first message: got %d, want none", got)
		}
		for i := range 3 {
			l.send(i+1, 8)
			synctest.Wait()
			if got := writers(); got != 0 {
				t.Errorf("writer loops after message %d: got %d, want none", i+1, got)
			}
			elapse(time.Hour)
		}
		l.send(4, 8)
		l.Close(link.Reason{Cause: link.Normal})
		if got, _ := collect(peer); !slices.Equal(got, upTo(4)) {
			t.Errorf("got %v, want %v", got, upTo(4))
		}
		l.wait()
	})
}

func TestABusyWriterLoopStaysUntilTheLinkIsIdleForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, peer := pipe(200)
		l := run(t, hub, link.Options{WriteTimeout: 30 * time.Second}, nil, nil)
		n := 0
		sendEach := func(messages int) {
			for range messages {
				n++
				l.send(n, 8)
				synctest.Wait()
			}
		}
		sendEach(20)
		if got := writers(); got != 1 {
			t.Errorf("writer loops of a link that is in use: got %d, want one that waits", got)
		}
		elapse(31 * time.Second)
		synctest.Wait()
		if got := writers(); got != 0 {
			t.Errorf("writer loops half a minute later: got %d, want none", got)
		}
		sendEach(20)
		if got := writers(); got != 1 {
			t.Errorf("writer loops of a link that is in use again: got %d, want one", got)
		}
		l.Close(link.Reason{Cause: link.Normal})
		if got, _ := collect(peer); !slices.Equal(got, upTo(40)) {
			t.Errorf("got %v, want %v", got, upTo(40))
		}
		l.wait()
	})
}
