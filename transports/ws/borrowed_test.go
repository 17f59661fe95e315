package ws_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/ws"
)

func TestASentMessageMayBeOverwrittenAtOnce(t *testing.T) {
	server, client := pair(t, ws.AcceptOptions{}, ws.DialOptions{})
	for _, way := range []struct{ from, to *ws.Conn }{{server, client}, {client, server}} {
		var want []string
		for _, size := range []int{1, 200, 5_000, 40_000, 70_000, 3, 30_000} {
			want = append(want, strings.Repeat("x", size))
		}
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			var batch [][]byte
			for _, m := range want {
				one := []byte(m)
				if err := way.from.Send(context.Background(), one); err != nil {
					t.Error(err)
				}
				clear(one)
				batch = append(batch, []byte(m))
			}
			if err := way.from.SendBatch(context.Background(), batch); err != nil {
				t.Error(err)
			}
			for _, m := range batch {
				clear(m)
			}
		}()
		for _, want := range append(want, want...) {
			if got, err := receive(way.to); got != want {
				t.Fatalf("got %d bytes, %.20q, and %v, want the %d that were sent", len(got), got, err, len(want))
			}
		}
		<-sent
	}
}
