package grpcserver_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// withToken admits the calls with the metadata token.
func withToken(ctx context.Context, _ string) (context.Context, error) {
	if len(metadata.ValueFromIncomingContext(ctx, "token")) == 0 {
		return nil, status.Error(codes.Unauthenticated, "no token")
	}
	return ctx, nil
}

// answering is a service whose Ask answers.
func answering(*grpcserver.Server) testService {
	return testService{ask: func(context.Context) (*message, error) { return msg("answer"), nil }}
}

// begin sends the metadata of a call, but not its request.
func begin(ctx context.Context, t *testing.T, cc *grpc.ClientConn, method string) grpc.ClientStream {
	t.Helper()
	call, err := cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// wantCode reads the answer of a call and checks its status.
func wantCode(t *testing.T, call grpc.ClientStream, want codes.Code) {
	t.Helper()
	if err := call.RecvMsg(new(message)); status.Code(err) != want {
		t.Errorf("got %v, want %v", err, want)
	}
}

func tokenContext(t testing.TB) context.Context {
	return metadata.AppendToOutgoingContext(testContext(t), "token", "yes")
}

func TestCredentialsAreCheckedBeforeTheBodyIsRead(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{Admit: withToken}, answering)
	cc := dial(t, addr, grpcserver.DialOptions{})
	for _, method := range []string{"/test.Talk/Ask", "/test.Talk/Push", "/test.Talk/Chat", healthpb.Health_Watch_FullMethodName, healthpb.Health_List_FullMethodName, "/no.Such/Method"} {
		t.Run(method, func(t *testing.T) {
			wantCode(t, begin(testContext(t), t, cc, method), codes.Unauthenticated)
		})
	}
	if _, err := healthpb.NewHealthClient(cc).Check(testContext(t), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("Check without a token: got %v, want an answer", err)
	}
	if _, err := healthpb.NewHealthClient(cc).List(tokenContext(t), &healthpb.HealthListRequest{}); err != nil {
		t.Errorf("List with a token: got %v, want an answer", err)
	}
}

func TestAnUnknownMethodIsNotNamedToAdmit(t *testing.T) {
	var asked atomic.Value
	_, addr := serve(t, grpcserver.Options{Admit: func(ctx context.Context, method string) (context.Context, error) {
		asked.Store(method)
		return ctx, nil
	}}, answering)
	wantCode(t, begin(testContext(t), t, dial(t, addr, grpcserver.DialOptions{}), "/no.Such/"+strings.Repeat("x", 10_000)), codes.Unimplemented)
	if got := asked.Load(); got != "(unknown)" {
		t.Errorf("got the method %.40q, want (unknown)", got)
	}
}

func TestAPanicOfAdmitRefusesOneCall(t *testing.T) {
	reported := make(chan any, 1)
	_, addr := serve(t, grpcserver.Options{
		Admit:   func(context.Context, string) (context.Context, error) { panic("boom") },
		OnPanic: func(_ string, value any, _ []byte) { reported <- value },
	}, answering)
	wantCode(t, begin(testContext(t), t, dial(t, addr, grpcserver.DialOptions{}), "/test.Talk/Ask"), codes.Internal)
	if got := <-reported; got != "boom" {
		t.Errorf("got panic %v, want boom", got)
	}
}

func TestRequestsOfHealthAreRefusedBeforeTheyAreRead(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{}, answering)
	cc := dial(t, addr, grpcserver.DialOptions{})
	sized := func(bytes int) *healthpb.HealthCheckRequest {
		in := &healthpb.HealthCheckRequest{Service: strings.Repeat("x", bytes)}
		in.Service = in.Service[proto.Size(in)-bytes:]
		return in
	}
	for size, want := range map[int]codes.Code{256: codes.NotFound, 257: codes.ResourceExhausted, 3 << 20: codes.ResourceExhausted} {
		_, err := healthpb.NewHealthClient(cc).Check(testContext(t), sized(size))
		if status.Code(err) != want {
			t.Errorf("Check of %d bytes: got %v, want %v", size, err, want)
		}
	}
	watch := begin(testContext(t), t, cc, healthpb.Health_Watch_FullMethodName)
	if err := watch.SendMsg(sized(257)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, watch, codes.ResourceExhausted)
}

func TestWatchesOfAConnectionAreBounded(t *testing.T) {
	const most = 4
	_, addr := serve(t, grpcserver.Options{}, answering)
	cc := dial(t, addr, grpcserver.DialOptions{})
	first, end := context.WithCancel(testContext(t))
	defer end()
	watch := func(ctx context.Context) error {
		w, err := healthpb.NewHealthClient(cc).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		return err
	}
	for i := range most {
		if err := watch(first); err != nil {
			t.Fatalf("watch %d: got %v, want an answer", i+1, err)
		}
	}
	if err := watch(testContext(t)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("watch %d: got %v, want %v", most+1, err, codes.ResourceExhausted)
	}
	end()
	for ctx := testContext(t); ; {
		err := watch(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("after the others ended: got %v, want an answer", err)
		}
	}
}

func TestABodyThatDoesNotArriveEndsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = time.Second
		l := newPipes()
		serveOn(t, l, grpcserver.Options{Admit: withToken, BodyTimeout: limit}, func(*grpcserver.Server) testService {
			return testService{
				ask: func(ctx context.Context) (*message, error) {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(4 * limit):
						return msg("answer"), nil
					}
				},
				push: func(stream grpc.ServerStreamingServer[message]) error {
					select {
					case <-stream.Context().Done():
						return stream.Context().Err()
					case <-time.After(4 * limit):
						return nil
					}
				},
			}
		})
		cc := l.dial(t)
		for _, method := range []string{"/test.Talk/Ask", "/test.Talk/Push"} {
			wantCode(t, begin(tokenContext(t), t, cc, method), codes.DeadlineExceeded)
			call := begin(tokenContext(t), t, cc, method)
			if err := call.SendMsg(msg("here")); err != nil {
				t.Fatal(err)
			}
			call.CloseSend()
			if err := call.RecvMsg(new(message)); status.Code(err) == codes.DeadlineExceeded {
				t.Errorf("%s, whose request arrived: got %v, want it to run on", method, err)
			}
		}
		wantCode(t, begin(testContext(t), t, cc, healthpb.Health_Check_FullMethodName), codes.DeadlineExceeded)
	})
}

func TestIdleConnectionsWithoutATokenLockNobodyOut(t *testing.T) {
	var closed atomic.Int32
	_, addr := serve(t, grpcserver.Options{
		Admit: withToken, MaxConnections: 8, MaxUnauthenticated: 2,
		OnUnauthenticated: func(net.Addr) { closed.Add(1) },
	}, answering)
	idle := make([]net.Conn, 8)
	for i := range idle {
		idle[i] = rawDial(t, addr)
	}
	cc := dial(t, addr, grpcserver.DialOptions{})
	if err := cc.Invoke(tokenContext(t), "/test.Talk/Ask", msg("hello"), new(message)); err != nil {
		t.Fatalf("with a token: got %v, want an answer", err)
	}
	for _, conn := range idle[:6] {
		wantEnd(t, conn)
	}
	for range 8 {
		rawDial(t, addr)
	}
	if err := cc.Invoke(tokenContext(t), "/test.Talk/Ask", msg("hello"), new(message)); err != nil {
		t.Errorf("on the same connection: got %v, want an answer", err)
	}
	if got := closed.Load(); got < 6 {
		t.Errorf("got %d connections reported, want at least 6", got)
	}
}

func TestAConnectionHasToAuthenticateInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, l := make(chan struct{}), newPipes()
		serveOn(t, l, grpcserver.Options{Admit: withToken, AuthTimeout: time.Second}, func(*grpcserver.Server) testService {
			return testService{chat: func(stream rawServer) error {
				close(begun)
				<-stream.Context().Done()
				return nil
			}}
		})
		proven := begin(tokenContext(t), t, l.dial(t), "/test.Talk/Chat")
		<-begun
		silent, err := l.connect(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		wantEnd(t, silent)
		if err := proven.SendMsg(msg("still here")); err != nil || proven.Context().Err() != nil {
			t.Errorf("a connection with a token: got %v, want it open", err)
		}
	})
}

func TestAConnectionWhoseCallsAreAllRefusedIsClosed(t *testing.T) {
	closed := make(chan struct{})
	_, addr := serve(t, grpcserver.Options{Admit: withToken, OnUnauthenticated: func(net.Addr) { close(closed) }}, answering)
	cc := dial(t, addr, grpcserver.DialOptions{})
	for range 32 {
		err := cc.Invoke(testContext(t), "/test.Talk/Ask", msg("hello"), new(message))
		if code := status.Code(err); code != codes.Unauthenticated && code != codes.Unavailable {
			t.Fatalf("got %v, want %v", err, codes.Unauthenticated)
		}
	}
	within(t, closed, "the connection closed")
}

// rawDial opens a TCP connection that says nothing.
func rawDial(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// wantEnd checks that the server closes a connection.
func wantEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(testTimeout))
	for buf := make([]byte, 1024); ; {
		if _, err := conn.Read(buf); err != nil {
			if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
				t.Errorf("got an open connection, want it closed")
			}
			return
		}
	}
}
