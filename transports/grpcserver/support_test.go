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

// testTimeout bounds every wait of a test. Only a failing test reaches it.
const testTimeout = 2 * time.Minute

// message is the message of the test service in both directions.
type message = wrapperspb.BytesValue

// rawServer and rawClient are the gRPC streams of the two ends.
type (
	rawServer = grpc.BidiStreamingServer[message, message]
	rawClient = grpc.BidiStreamingClient[message, message]
	stream    = grpcserver.Stream[message, message]
)

func msg(text string) *message { return &message{Value: []byte(text)} }

// testService is a service of three methods: chat is bidirectional, push only
// sends, ask is a plain call.
type testService struct {
	chat func(rawServer) error
	push func(grpc.ServerStreamingServer[message]) error
	ask  func(context.Context) (*message, error)
}

var testServiceDesc = grpc.ServiceDesc{
	ServiceName: "test.Talk",
	HandlerType: (*any)(nil),
	Streams: []grpc.StreamDesc{
		{
			StreamName: "Chat", ServerStreams: true, ClientStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error {
				return srv.(testService).chat(&grpc.GenericServerStream[message, message]{ServerStream: ss})
			},
		},
		{
			StreamName: "Push", ServerStreams: true,
			Handler: func(srv any, ss grpc.ServerStream) error {
				if err := ss.RecvMsg(new(message)); err != nil {
					return err
				}
				return srv.(testService).push(&grpc.GenericServerStream[message, message]{ServerStream: ss})
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
			call := func(ctx context.Context, _ any) (any, error) { return srv.(testService).ask(ctx) }
			return around(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Talk/Ask"}, call)
		},
	}},
}

// chat returns the bidirectional method like generated code.
func chat(cc *grpc.ClientConn) func(context.Context, ...grpc.CallOption) (rawClient, error) {
	return func(ctx context.Context, opts ...grpc.CallOption) (rawClient, error) {
		cs, err := cc.NewStream(ctx, &testServiceDesc.Streams[0], "/test.Talk/Chat", opts...)
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

// testContext returns a context that ends after testTimeout.
func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// serve runs a server with the service until the test ends.
func serve(t testing.TB, o grpcserver.Options, impl func(*grpcserver.Server) testService) (*grpcserver.Server, string) {
	t.Helper()
	l := listen(t)
	return serveOn(t, l, o, impl), l.Addr().String()
}

// serveOn is serve for the connections of a listener.
func serveOn(t testing.TB, l net.Listener, o grpcserver.Options, impl func(*grpcserver.Server) testService) *grpcserver.Server {
	t.Helper()
	s := grpcserver.New(o)
	s.Register(&testServiceDesc, impl(s))
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		if err := s.Stop(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("Stop: got %v, want nil", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve: got %v, want nil", err)
		}
	})
	return s
}

// dial connects to addr until the test ends.
func dial(t testing.TB, addr string, o grpcserver.DialOptions) *grpc.ClientConn {
	t.Helper()
	cc, err := grpcserver.Dial(testContext(t), addr, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	return cc
}

// open opens the client's end of a chat.
func open(t testing.TB, addr string, o grpcserver.DialOptions) *stream {
	t.Helper()
	return openOn(t, dial(t, addr, o))
}

// openOn is open on a connection.
func openOn(t testing.TB, cc *grpc.ClientConn) *stream {
	t.Helper()
	c, err := grpcserver.Open(testContext(t), chat(cc))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(link.Reason{Cause: link.PeerGone}) })
	return c
}

// accepting starts a server whose chat passes the server's end to the test, and returns
// when the test has called release.
func accepting(t testing.TB, o grpcserver.Options) (addr string, accepted <-chan *stream, release func(link.Reason)) {
	t.Helper()
	l := listen(t)
	accepted, release = acceptingOn(t, l, o)
	return l.Addr().String(), accepted, release
}

// acceptingOn is accepting for the connections of a listener.
func acceptingOn(t testing.TB, l net.Listener, o grpcserver.Options) (accepted <-chan *stream, release func(link.Reason)) {
	t.Helper()
	streams := make(chan *stream, 1)
	reasons := make(chan link.Reason, 1)
	serveOn(t, l, o, func(s *grpcserver.Server) testService {
		return testService{chat: func(raw rawServer) error {
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			streams <- c
			return grpcserver.Status(<-reasons)
		}}
	})
	return streams, func(r link.Reason) { reasons <- r }
}

// pair returns both ends of one chat, which ends with the test.
func pair(t testing.TB, so grpcserver.Options, co grpcserver.DialOptions) (server, client *stream) {
	t.Helper()
	addr, accepted, release := accepting(t, so)
	client = open(t, addr, co)
	select {
	case server = <-accepted:
	case <-testContext(t).Done():
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

// reasonOf reads to the end of the stream and returns its reason.
func reasonOf(t testing.TB, c *stream) *link.Reason {
	t.Helper()
	ctx := testContext(t)
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
	case <-time.After(testTimeout):
		t.Fatalf("got nothing in %v, want %s", testTimeout, what)
	}
}

// async calls f in a goroutine and returns a channel that is closed when f returns.
func async(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}
