package grpcserver_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// message is what the service of these tests speaks in both directions.
type message = wrapperspb.BytesValue

// serverStream and clientStream are the two ends as a test sees them.
type (
	rawServer = grpc.BidiStreamingServer[message, message]
	rawClient = grpc.BidiStreamingClient[message, message]
	stream    = grpcserver.Stream[message, message]
)

func say(text string) *message { return &message{Value: []byte(text)} }

// talk describes a service of three methods: chat is bidirectional, push only
// sends, ask is a plain call.
type talk struct {
	chat func(rawServer) error
	push func(grpc.ServerStreamingServer[message]) error
	ask  func(context.Context) (*message, error)
}

var talkDesc = grpc.ServiceDesc{
	ServiceName: "test.Talk",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{
			StreamName: "Chat", ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error {
				return srv.(talk).chat(&grpc.GenericServerStream[message, message]{ServerStream: ss})
			},
		},
		{
			StreamName: "Push", ServerStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error {
				if err := ss.RecvMsg(new(message)); err != nil {
					return err
				}
				return srv.(talk).push(&grpc.GenericServerStream[message, message]{ServerStream: ss})
			},
		},
	},
	Methods: []grpc.MethodDesc{{
		MethodName: "Ask",
		Handler: func(srv any, ctx context.Context, decode func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			in := new(message)
			if err := decode(in); err != nil {
				return nil, err
			}
			call := func(ctx context.Context, _ any) (any, error) { return srv.(talk).ask(ctx) }
			return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Talk/Ask"}, call)
		},
	}},
}

// chat is the bidirectional method as generated code offers it to a client.
func chat(cc *grpc.ClientConn) func(context.Context, ...grpc.CallOption) (rawClient, error) {
	return func(ctx context.Context, opts ...grpc.CallOption) (rawClient, error) {
		cs, err := cc.NewStream(ctx, &talkDesc.Streams[0], "/test.Talk/Chat", opts...)
		return &grpc.GenericClientStream[message, message]{ClientStream: cs}, err
	}
}

// listen opens a loopback socket.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// soon is a context that ends when a test has waited too long.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a server with the service until the test ends.
func serve(t testing.TB, o grpcserver.Options, impl func(*grpcserver.Server) talk) (*grpcserver.Server, string) {
	t.Helper()
	s := grpcserver.New(o)
	s.Register(&talkDesc, impl(s))
	l := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Stop: got %v, want nil", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return s, l.Addr().String()
}

// dial connects to addr until the test ends.
func dial(t testing.TB, addr string, o grpcserver.DialOptions) *grpc.ClientConn {
	t.Helper()
	cc, err := grpcserver.Dial(soon(t), addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// open opens the client's end of a chat.
func open(t testing.TB, addr string, o grpcserver.DialOptions) *stream {
	t.Helper()
	c, err := grpcserver.Open(soon(t), chat(dial(t, addr, o)), grpcserver.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(link.Reason{Cause: link.PeerGone}) })
	return c
}

// accepting is a service whose chat hands the server's end to the test and
// returns when that is closed and test has called the returned function.
func accepting(t testing.TB, o grpcserver.Options) (addr string, accepted <-chan *stream, release func(link.Reason)) {
	t.Helper()
	streams := make(chan *stream, 1)
	reasons := make(chan link.Reason, 1)
	_, addr = serve(t, o, func(s *grpcserver.Server) talk {
		return talk{chat: func(raw rawServer) error {
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			streams <- c
			return grpcserver.Status(<-reasons)
		}}
	})
	return addr, streams, func(r link.Reason) { reasons <- r }
}

// pair is both ends of one chat; it ends with the test.
func pair(t testing.TB, so grpcserver.Options, co grpcserver.DialOptions) (server, client *stream) {
	t.Helper()
	addr, accepted, release := accepting(t, so)
	client = open(t, addr, co)
	select {
	case server = <-accepted:
	case <-soon(t).Done():
		t.Fatal("the chat was not accepted")
	}
	t.Cleanup(func() { release(link.Reason{Cause: link.Normal}) })
	return server, client
}

// receive gets the next message as text.
func receive(ctx context.Context, t testing.TB, c *stream) string {
	t.Helper()
	m, err := c.Receive(ctx)
	if err != nil {
		t.Fatalf("Receive: got error %v, want a message", err)
	}
	return string(m.Value)
}

// reasonOf reads until the end and returns why it came.
func reasonOf(t testing.TB, c *stream) *link.Reason {
	t.Helper()
	ctx := soon(t)
	for {
		_, err := c.Receive(ctx)
		if err == nil {
			continue
		}
		var r *link.Reason
		if !errors.As(err, &r) {
			t.Fatalf("Receive: got %v, want a *link.Reason", err)
		}
		return r
	}
}

// within fails the test when done is not closed in time.
func within(t testing.TB, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("got nothing in %v, want %s", patience, what)
	}
}

// during starts f and returns a channel that is closed when it has returned.
func during(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
