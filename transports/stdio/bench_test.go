//go:build unix

package stdio_test

import (
	"context"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// BenchmarkEcho measures a round trip over a Unix socket with a link at the server.
func BenchmarkEcho(b *testing.B) {
	server, client := sockets(b)
	l := link.New(server, link.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		l.Run(context.Background(), func(ctx context.Context, m []byte) error { return l.Send(ctx, m, len(m)) }, nil)
	})
	echo(b, client)
	_ = client.Close(link.Reason{})
	wg.Wait()
}

// BenchmarkChildEcho measures the same with another process.
func BenchmarkChildEcho(b *testing.B) { echo(b, start(b, childCommand("std"), stdio.ChildOptions{})) }

func echo(b *testing.B, c conn) {
	m := make([]byte, 200)
	for i := range m {
		m[i] = 'x'
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Send(context.Background(), m); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Receive(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream measures a sequence of messages of 200 bytes through a link.
func BenchmarkStream(b *testing.B) {
	server, client := sockets(b)
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
	_ = client.Close(link.Reason{})
	wg.Wait()
}
