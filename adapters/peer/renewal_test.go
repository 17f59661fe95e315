package peer_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAnInquiryWaitsForTheNextConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRelinked(t)
		answer := make(chan *core.Fault, 1)
		ask := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			_, err := r.a.peers.Ask(ctx, "b", rpc.Request{What: "nothing"})
			answer <- core.AsFault(err)
		}
		for range 3 {
			go ask()
			synctest.Wait()
			r.link()
			if f := <-answer; f.Code != core.CodeUnsupported {
				t.Errorf("over the next connection: got %v, want what the other hub says", f)
			}
			r.end()
		}
		began := time.Now()
		ask()
		if f, took := <-answer, time.Since(began); f.Code != core.CodeUnreachable || took != 2*time.Second {
			t.Errorf("without a connection: got %v after %s, want it unreachable after 2s", f, took)
		}
		go ask()
		synctest.Wait()
		began = time.Now()
		r.there.Close()
		if f, took := <-answer, time.Since(began); f.Code != core.CodeUnreachable || took != 0 {
			t.Errorf("as the hub is gone: got %v after %s, want it unreachable at once", f, took)
		}
	})
}

// cutter has the connections of the hubs of a world, to end them.
type cutter struct {
	mu  sync.Mutex
	all []link.Conn[[]byte, []byte]
}

func (c *cutter) dialled(_, _ string, conn link.Conn[[]byte, []byte]) link.Conn[[]byte, []byte] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, conn)
	return conn
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.all {
		_ = conn.Close(link.Reason{})
	}
	c.all = nil
}

func TestAnAgentGetsAllTurnsWhileConnectionsBetweenHubsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all cutter
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		w.talk(w.person("a"), bob, "bob", "talk", "one?", "1")
		w.net.Kill("c")
		w.untilGone("c")
		w.talk(w.person("a"), bob, "bob", "talk", "two?", "2")
		w.dialled = all.dialled
		w.start("c", 2)
		w.until("c has a quorum", w.hubs["c"].part.Cluster().HasQuorum)
		cyd, ann := w.join("c", core.Card{ID: "cyd"}), w.person("c")
		all.cut()
		synctest.Wait() // the hubs know that they have ended
		if got := said(w.talk(ann, cyd, "cyd", "talk", "three?", "3").Request().History); got != "one?, 1, two?, 2" {
			t.Errorf("got the history %q, want all of it", got)
		}
		all.cut()
		synctest.Wait()
		page, err := w.hubs["c"].Tasks(t.Context(), operator, task.Filter{})
		if err != nil || len(page.Missing) > 0 || len(page.Tasks) != 3 {
			t.Errorf("got a list of %d tasks without hubs %q and %v, want all three", len(page.Tasks), page.Missing, err)
		}
	})
}

// stranger is a connection of a hub that speaks a later version of the frames.
type stranger struct{ link.Conn[[]byte, []byte] }

func (s stranger) Send(ctx context.Context, frame []byte) error {
	return s.Conn.Send(ctx, bytes.Replace(frame, []byte(`{"version":1`), []byte(`{"version":2`), 1))
}

func TestAHubOfAnotherVersionIsToldOfOnceAndAskedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var logged lines
		dials := 0
		w := newWorld(t)
		w.log = slog.New(slog.NewTextHandler(&logged, nil))
		w.dialled = func(from, to string, conn link.Conn[[]byte, []byte]) link.Conn[[]byte, []byte] {
			mu.Lock()
			defer mu.Unlock()
			if from == "a" && to == "c" {
				dials++
			}
			if from == "c" {
				return stranger{conn}
			}
			return conn
		}
		for i, name := range []string{"a", "b", "c"} {
			w.start(name, i)
		}
		w.until("a has a quorum", w.hubs["a"].part.Cluster().HasQuorum)
		time.Sleep(time.Minute)
		mu.Lock()
		if dials > 25 {
			t.Errorf("in a minute: got %d connections, want at most 25", dials)
		}
		mu.Unlock()
		if got := logged.with("speaks version 2"); got != 2 {
			t.Errorf("got it logged %d times, want once at each of the two other hubs", got)
		}
		began := time.Now()
		page, err := w.hubs["a"].Tasks(t.Context(), operator, task.Filter{})
		if took := time.Since(began); err != nil || strings.Join(page.Missing, " ") != "c" || took > time.Second {
			t.Errorf("a list: got it without hubs %q and %v after %s, want it without c at once", page.Missing, err, took)
		}
	})
}

// lines counts the lines of a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) with(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
