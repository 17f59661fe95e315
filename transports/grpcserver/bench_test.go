package grpcserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// The benchmarks send messages of 64 bytes through one stream over loopback. Both ends are
// in this process: an op is the cost of one message at both.

// batch is how many messages SendBatch gets at a time.
const batch = 16

func BenchmarkToTheServer(b *testing.B) {
	server, client := pair(b, grpcserver.Options{}, grpcserver.DialOptions{})
	flow(b, client, server, one)
}

func BenchmarkToTheClient(b *testing.B) {
	server, client := pair(b, grpcserver.Options{}, grpcserver.DialOptions{})
	flow(b, server, client, one)
}

func BenchmarkToTheClientEachWithItsOwnDeadline(b *testing.B) {
	server, client := pair(b, grpcserver.Options{}, grpcserver.DialOptions{})
	flow(b, server, client, func(s *stream, m *message) (int, error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return 1, s.Send(ctx, m)
	})
}

func BenchmarkToTheClientInBatches(b *testing.B) {
	server, client := pair(b, grpcserver.Options{}, grpcserver.DialOptions{})
	ms := make([]*message, batch)
	flow(b, server, client, func(s *stream, m *message) (int, error) {
		for i := range ms {
			ms[i] = m
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		return batch, s.SendBatch(ctx, ms)
	})
}

// one sends a single message.
func one(s *stream, m *message) (int, error) { return 1, s.Send(context.Background(), m) }

// flow sends b.N messages, or a few more, from one end to the other.
func flow(b *testing.B, from, to *stream, send func(*stream, *message) (int, error)) {
	m := &message{Value: make([]byte, 64)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	sent := async(func() {
		for n := 0; n < b.N; {
			k, err := send(from, m)
			if err != nil {
				b.Errorf("Send: got %v, want nil", err)
				from.Close(link.Reason{Cause: link.Internal})
				return
			}
			n += k
		}
	})
	for range b.N {
		if _, err := to.Receive(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	within(b, sent, "all messages sent")
}

// BenchmarkRoundTrip measures a message and its echo.
func BenchmarkRoundTrip(b *testing.B) {
	server, client := pair(b, grpcserver.Options{}, grpcserver.DialOptions{})
	ctx := context.Background()
	echo := async(func() {
		for {
			m, err := server.Receive(ctx)
			if err != nil || server.Send(ctx, m) != nil {
				return
			}
		}
	})
	m := &message{Value: make([]byte, 64)}
	b.ReportAllocs()
	for b.Loop() {
		if err := client.Send(ctx, m); err != nil {
			b.Fatal(err)
		}
		if _, err := client.Receive(ctx); err != nil {
			b.Fatal(err)
		}
	}
	server.Close(link.Reason{Cause: link.Normal})
	within(b, echo, "the echo to end")
}
