package ws_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// echo runs a link over c that sends back what it receives.
func echo(c *ws.Conn) (wait func()) {
	var wg sync.WaitGroup
	l := link.New(c, link.Options{})
	wg.Go(func() {
		l.Run(context.Background(), func(ctx context.Context, m []byte) error { return l.Send(ctx, m, len(m)) }, nil)
	})
	return wg.Wait
}

// BenchmarkEcho measures a round trip over a loopback socket with a link at the server.
func BenchmarkEcho(b *testing.B) {
	server, client := pair(b, ws.AcceptOptions{}, ws.DialOptions{})
	wait := echo(server)
	m := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Send(context.Background(), m); err != nil {
			b.Fatal(err)
		}
		if _, err := client.Receive(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	_ = client.Close(link.Reason{Cause: link.Normal})
	wait()
}

// BenchmarkStream measures a sequence of messages of 200 bytes through a link, like the
// chunks of an answer.
func BenchmarkStream(b *testing.B) {
	server, client := pair(b, ws.AcceptOptions{}, ws.DialOptions{})
	l := link.New(server, link.Options{})
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(context.Background(), nil, nil) })
	m := make([]byte, 200)
	b.SetBytes(int64(len(m)))
	b.ReportAllocs()
	wg.Go(func() {
		for range b.N {
			_ = l.Send(context.Background(), m, len(m))
		}
	})
	b.ResetTimer()
	for range b.N {
		if _, err := client.Receive(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = client.Close(link.Reason{Cause: link.Normal})
	wg.Wait()
}

// BenchmarkInbound measures messages of 200 bytes that arrive faster than they are read,
// like the chunks of an agent.
func BenchmarkInbound(b *testing.B) {
	server, client := pair(b, ws.AcceptOptions{}, ws.DialOptions{})
	var wg sync.WaitGroup
	batch := make([][]byte, 100)
	for i := range batch {
		batch[i] = make([]byte, 200)
	}
	b.SetBytes(int64(len(batch[0])))
	b.ReportAllocs()
	wg.Go(func() {
		for range b.N/len(batch) + 1 {
			_ = client.SendBatch(context.Background(), batch)
		}
	})
	b.ResetTimer()
	for range b.N {
		if _, err := server.Receive(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	_ = server.Close(link.Reason{Cause: link.PeerGone})
	wg.Wait()
}

// BenchmarkIdle measures the memory of an idle connection at the server: socket, buffers,
// and its link. The clients are in the same process and minimal, but their sockets count
// too.
func BenchmarkIdle(b *testing.B) {
	url, conns := listen(b, ws.AcceptOptions{})
	var wg sync.WaitGroup
	var links []*link.Link[[]byte, []byte]
	before := coretest.Resident()
	for range 2000 {
		r := rawDial(b, url)
		r.r = nil
		c := <-conns
		l := link.New(c, link.Options{})
		links = append(links, l)
		received := make(chan struct{})
		wg.Go(func() {
			l.Run(context.Background(), func(ctx context.Context, m []byte) error {
				defer close(received)
				return l.Send(ctx, m, len(m))
			}, nil)
		})
		r.send(frame(text, "the stacks have grown to what one message needs"))
		<-received
	}
	kept := coretest.Resident() - before
	for b.Loop() {
		// Nothing is timed: the connections are idle.
	}
	b.ReportMetric(float64(kept)/float64(len(links)), "B/conn")
	for _, l := range links {
		l.Close(link.Reason{Cause: link.PeerGone})
	}
	wg.Wait()
}
