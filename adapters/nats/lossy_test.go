package nats_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// external starts a NATS server that is not embedded.
func external(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(watchdog) {
		t.Fatal("the server did not start")
	}
	return s
}

// lossy is a proxy in front of a server that changes what a client says, once.
type lossy struct {
	said, instead []byte // equally long
	armed, lost   atomic.Bool
	gone          context.CancelFunc // called once something is lost; nil for none
}

// untilLost returns a context that ends once the proxy has lost something, and arms it.
func (l *lossy) untilLost(ctx context.Context) context.Context {
	ctx, l.gone = context.WithCancel(ctx)
	l.armed.Store(true)
	return ctx
}

// throughLossy opens a journal on an external server behind a proxy. Once armed, the proxy
// replaces said.
func throughLossy(t *testing.T, said, instead string) (*nats.Journal, *lossy) {
	t.Helper()
	url, l := lossyTo(t, external(t), said, instead)
	return opened(t, nats.Options{URL: url}), l
}

// lossyTo starts such a proxy in front of a server, and returns its address.
func lossyTo(t *testing.T, s *server.Server, said, instead string) (url string, _ *lossy) {
	t.Helper()
	if strings.HasPrefix(instead, "$") { // somebody has to be there to be asked
		c, err := client.Connect(s.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if _, err := c.SubscribeSync("$JX.>"); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	l := &lossy{said: []byte(said), instead: []byte(instead)}
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() { in.Close(); running.Wait() })
	running.Go(func() {
		for {
			near, err := in.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				near.Close()
				return
			}
			running.Go(func() { l.pass(far, near) })
			running.Go(func() { (&lossy{}).pass(near, far) })
		}
	})
	return "nats://" + in.Addr().String(), l
}

// pass copies what one side says to the other.
func (l *lossy) pass(to, from net.Conn) {
	defer to.Close()
	room, kept := make([]byte, 1<<20), 0
	for {
		n, err := from.Read(room[kept:])
		if err != nil {
			return
		}
		all := room[:kept+n]
		kept = l.begun(all)
		if _, err := to.Write(l.change(all[:len(all)-kept])); err != nil {
			return
		}
		copy(room, all[len(all)-kept:])
	}
}

// begun returns how many bytes at the end of b may be the beginning of said. No message ends with them.
func (l *lossy) begun(b []byte) int {
	for n := min(len(l.said)-1, len(b)); n > 0; n-- {
		if bytes.HasSuffix(b, l.said[:n]) {
			return n
		}
	}
	return 0
}

func (l *lossy) change(b []byte) []byte {
	if l.armed.Load() && bytes.Contains(b, l.said) && l.lost.CompareAndSwap(false, true) {
		if l.gone != nil {
			l.gone()
		}
		return bytes.Replace(b, l.said, l.instead, 1)
	}
	return b
}

func TestAReadDoesNotWaitForAnAnswerThatIsLost(t *testing.T) {
	j, proxy := throughLossy(t, "$JS.API.DIRECT.GET", "$JX.API.DIRECT.GET")
	task, events := core.TaskID(core.NewID()), life("thread", 3)
	if err := j.Append(t.Context(), recorded(task, events...)...); err != nil {
		t.Fatal(err)
	}
	proxy.armed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	got, err := j.Read(ctx, task, 0, 0)
	if err != nil || len(got) != len(events) || !proxy.lost.Load() {
		t.Errorf("got %d events and %v, want %d", len(got), err, len(events))
	}
}

func TestAReplayAsksAgainWhenItsRequestWasLost(t *testing.T) {
	j, proxy := throughLossy(t, "$JS.API.DIRECT.GET", "$JX.API.DIRECT.GET")
	if err := j.Usage().Append(t.Context(), usage.Record{Task: "t", Seq: 1}); err != nil {
		t.Fatal(err)
	}
	proxy.armed.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	read := 0
	err := j.Usage().Replay(ctx, func(usage.Record) bool { read++; return true })
	if err != nil || read != 1 || !proxy.lost.Load() {
		t.Errorf("got %d messages and %v, want 1", read, err)
	}
}

// A hub that starts on a busy machine has nothing else to do than to wait for its server.
func TestAStartWaitsForAServerThatDoesNotAnswer(t *testing.T) {
	tier.Full(t, "the server says nothing for longer than a request may take")
	j, proxy := throughLossy(t, "$JS.API.DIRECT.GET", "$JX.API.DIRECT.GET")
	if err := j.Usage().Append(t.Context(), usage.Record{Task: "t", Seq: 1}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	silence, over := context.WithTimeout(ctx, 6*time.Second)
	defer over()
	proxy.armed.Store(true)
	var losing sync.WaitGroup
	losing.Go(func() {
		for again := time.NewTicker(time.Millisecond); silence.Err() == nil; {
			select {
			case <-again.C:
				proxy.lost.Store(false) // the next request is lost, too
			case <-silence.Done():
			}
		}
	})
	read := 0
	err := j.Usage().Replay(ctx, func(usage.Record) bool { read++; return true })
	if err != nil || read != 1 || silence.Err() == nil {
		t.Errorf("got %d messages and %v, want 1 once the server answers again", read, err)
	}
	losing.Wait()
}

// The servers say that there is no leader, as during an election, when a hub asks who owns a stream.
func TestATakeoverAsksAgainWhileThereIsNoLeader(t *testing.T) {
	s := external(t)
	a := together(t, s, "a")[0]
	c, err := client.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Subscribe("$JX.API.STREAM.MSG.GET.>", func(m *client.Msg) {
		_ = m.Respond([]byte(`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`)) // else it waits for the answer in vain
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	url, proxy := lossyTo(t, s, "$JS.API.STREAM.MSG.GET", "$JX.API.STREAM.MSG.GET")
	b := opened(t, nats.Options{URL: url, Name: "b", Cluster: &nats.Cluster{Name: "all"}})
	proxy.armed.Store(true)
	if _, err := b.TakeOver(t.Context(), a.Life()); err != nil || !proxy.lost.Load() {
		t.Errorf("got %v (the servers said so: %t), want the life taken over", err, proxy.lost.Load())
	}
}

// A server that has just come to lead the cluster does not know the streams that the hub has made at its
// start.
func TestAStartAsksAgainWhereAServerDoesNotKnowItsStreamYet(t *testing.T) {
	s := external(t)
	together(t, s, "a")
	c, err := client.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Subscribe("$JX.API.STREAM.MSG.GET.>", func(m *client.Msg) {
		_ = m.Respond([]byte(`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`)) // else it waits for the answer in vain
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	url, proxy := lossyTo(t, s, "$JS.API.STREAM.MSG.GET.b-tasks", "$JX.API.STREAM.MSG.GET.b-tasks")
	proxy.armed.Store(true)
	b := opened(t, nats.Options{URL: url, Name: "b", Cluster: &nats.Cluster{Name: "all"}})
	if got := b.Life().String(); got != "b/1" || !proxy.lost.Load() {
		t.Errorf("got the life %s (a server said so: %t), want b/1", got, proxy.lost.Load())
	}
}

// The messages of an append are stored, but their acknowledgement is lost. The recorder
// appends them again; what stands in the journal twice is read once.
func TestAnAppendWhoseAcknowledgementIsLostIsRepeated(t *testing.T) {
	first, second := begun(time.Now().Add(-time.Hour)), begun(time.Now())
	records := append(recorded(first, life("", 1)...), recorded(second, life("", 1)...)...) // two messages
	j, proxy := throughLossy(t, subjectOf(second)+" _INBOX.", subjectOf(second)+" _LOSTX.")
	if err := j.Append(proxy.untilLost(t.Context()), records...); err == nil || !proxy.lost.Load() {
		t.Fatalf("without an acknowledgement: got %v, want an error", err)
	}
	for _, when := range []string{"again", "after that"} {
		if err := j.Append(t.Context(), records...); err != nil {
			t.Errorf("%s: got %v, want no error", when, err)
		}
	}
	for _, task := range []core.TaskID{first, second} {
		if events, err := j.Read(t.Context(), task, 0, 0); err != nil || len(events) != 3 {
			t.Errorf("got %d events and %v, want 3", len(events), err)
		}
	}
}
