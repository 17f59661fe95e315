package link_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// sink takes everything at once and receives nothing until it is closed.
type sink struct {
	once   sync.Once
	closed chan struct{}
}

func (s *sink) Receive(context.Context) ([]byte, error) {
	<-s.closed
	return nil, net.ErrClosed
}

func (s *sink) Send(context.Context, []byte) error { return nil }

func (s *sink) SendBatch(context.Context, [][]byte) error { return nil }

func (s *sink) Close(link.Reason) error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// BenchmarkSend measures what the link itself costs to send a message.
func BenchmarkSend(b *testing.B) {
	l := link.New[[]byte, []byte](&sink{closed: make(chan struct{})}, link.Options{})
	var wg sync.WaitGroup
	wg.Go(func() { l.Run(context.Background(), nil, nil) })
	m := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Send(context.Background(), m, len(m)); err != nil {
			b.Fatal(err)
		}
	}
	l.Close(link.Reason{})
	wg.Wait()
}

// BenchmarkFrames measures what frames cost a message: off nothing beyond BenchmarkSend, on a copy of it
// for as long as it is kept.
func BenchmarkFrames(b *testing.B) {
	for name, book := range map[string]*frame.Book{"off": nil, "on": frame.NewBook(frame.Options{Keep: 1 << 20})} {
		b.Run(name, func(b *testing.B) {
			ring := book.Connect("test", nil)
			l := link.New[[]byte, []byte](&sink{closed: make(chan struct{})}, link.Options{Frames: ring})
			var wg sync.WaitGroup
			wg.Go(func() { l.Run(context.Background(), nil, nil) })
			m := make([]byte, 200)
			ctx := ring.Telling(context.Background(), "t", false, core.KindText)
			b.ReportAllocs()
			for b.Loop() {
				if err := l.Send(ctx, m, len(m)); err != nil {
					b.Fatal(err)
				}
			}
			l.Close(link.Reason{})
			wg.Wait()
		})
	}
}

// BenchmarkEcho measures a message there and back through a pipe: two loops, two
// handovers between goroutines each way.
func BenchmarkEcho(b *testing.B) {
	hub, peer := coretest.Pipe[[]byte, []byte](64)
	l := link.New[[]byte, []byte](hub, link.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		l.Run(context.Background(), func(ctx context.Context, m []byte) error { return l.Send(ctx, m, len(m)) }, nil)
	})
	m := make([]byte, 200)
	b.ReportAllocs()
	for b.Loop() {
		_ = peer.Send(context.Background(), m)
		if _, err := peer.Receive(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
	l.Close(link.Reason{})
	wg.Wait()
}

// BenchmarkIdle measures what an idle link keeps, its two goroutines included.
func BenchmarkIdle(b *testing.B) {
	var wg sync.WaitGroup
	var links []*link.Link[[]byte, []byte]
	before := coretest.Resident()
	n := 0
	for b.Loop() {
		l := link.New[[]byte, []byte](&sink{closed: make(chan struct{})}, link.Options{})
		wg.Go(func() { l.Run(context.Background(), nil, nil) })
		links = append(links, l)
		n++
	}
	b.ReportMetric(float64(coretest.Resident()-before)/float64(n), "B/link")
	for _, l := range links {
		l.Close(link.Reason{})
	}
	wg.Wait()
}
