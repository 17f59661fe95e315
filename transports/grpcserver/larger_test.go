package grpcserver_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// A larger limit for one method does not change the limit of the others.
func TestALargerLimitForOneMethodKeepsTheLimitOfTheOthers(t *testing.T) {
	o := grpcserver.Options{MaxMessageBytes: 100, Larger: map[string]int{"/test.Talk/Ask": 1000}}
	_, addr := serve(t, o, func(s *grpcserver.Server) testService {
		return testService{
			ask: func(context.Context) (*message, error) { return msg("received"), nil },
			chat: func(raw rawServer) error {
				c, err := grpcserver.Accept(s, raw)
				if err != nil {
					return err
				}
				m, err := c.Receive(raw.Context())
				if err != nil || len(m.Value) != 50 {
					t.Errorf("a message of 50 bytes: got %v, %v, want the message", m, err)
				}
				_, err = c.Receive(raw.Context())
				var r *link.Reason
				if !errors.As(err, &r) || r.Cause != link.TooLarge {
					t.Errorf("the server's end: got %v, want %v", err, link.TooLarge)
				}
				c.Close(link.Reason{Cause: link.TooLarge})
				return grpcserver.Status(link.Reason{Cause: link.TooLarge})
			},
		}
	})
	cc := dial(t, addr, grpcserver.DialOptions{})
	ask := func(size int, opts ...grpc.CallOption) codes.Code {
		return status.Code(cc.Invoke(testContext(t), "/test.Talk/Ask", msg(strings.Repeat("x", size)), new(message), opts...))
	}
	for size, want := range map[int]codes.Code{50: codes.OK, 900: codes.OK, 2000: codes.ResourceExhausted} {
		if got := ask(size); got != want {
			t.Errorf("a request of %d bytes: got %v, want %v", size, got, want)
		}
	}
	c := open(t, addr, grpcserver.DialOptions{})
	for _, size := range []int{50, 500} {
		if err := c.Send(testContext(t), msg(strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
	if r := reasonOf(t, c); r.Code != int(codes.ResourceExhausted) {
		t.Errorf("a message of 500 bytes in a stream: got %v, want %v", r, codes.ResourceExhausted)
	}
}
