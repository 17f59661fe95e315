package grpcserver_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

var _ grpc.ServiceRegistrar = (*grpcserver.Server)(nil)

func nothing(*grpcserver.Server) testService { return testService{} }

func TestEveryServiceHasHealthAndReflection(t *testing.T) {
	ctx := testContext(t)
	_, addr := serve(t, grpcserver.Options{}, nothing)
	cc := dial(t, addr, grpcserver.DialOptions{})
	for _, service := range []string{"", "test.Talk"} {
		got, err := healthpb.NewHealthClient(cc).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
		if err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health of %q: got %v, %v, want serving", service, got, err)
		}
	}
	rs, err := reflectionpb.NewServerReflectionClient(cc).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	rs.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}})
	resp, err := rs.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "test.Talk") {
		t.Errorf("reflection: got services %s, want test.Talk among them", got)
	}
}

func TestARequestOfHealthThatIsNotOneMessageIsAnErrorOfTheProtocol(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{}, nothing)
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	const one = "\x00\x00\x00\x00\x00"
	for name, body := range map[string]string{
		"none": "", "half a header": "\x00\x00", "half a message": "\x00\x00\x00\x00\x09x", "two": one + one, "one and half a header": one + "\x00\x00",
	} {
		req, err := http.NewRequestWithContext(testContext(t), http.MethodPost, "http://"+addr+healthpb.Health_Check_FullMethodName, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/grpc")
		req.Header.Set("TE", "trailers")
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if got := resp.Trailer.Get("Grpc-Status") + resp.Header.Get("Grpc-Status"); got != strconv.Itoa(int(codes.Internal)) {
			t.Errorf("%s: got status %q, want %d", name, got, codes.Internal)
		}
	}
}

func TestStopNotifiesHealthWatchersAndDoesNotWaitForThem(t *testing.T) {
	ctx := testContext(t)
	s, addr := serve(t, grpcserver.Options{}, nothing)
	watch, err := healthpb.NewHealthClient(dial(t, addr, grpcserver.DialOptions{})).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("before: got %v, %v, want serving", got, err)
	}
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
	for {
		got, err := watch.Recv()
		if err != nil {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("end: got %v, want %v", err, codes.Unavailable)
			}
			return
		}
		if got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
			t.Errorf("at stop: got %v, want not serving", got.Status)
		}
	}
}

func TestStopWaitsForTheOwnersOfStreams(t *testing.T) {
	streams, stopping := make(chan *stream, 1), make(chan struct{})
	s, addr := serve(t, grpcserver.Options{}, func(s *grpcserver.Server) testService {
		return testService{chat: func(raw rawServer) error {
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			streams <- c
			<-stopping
			c.Send(context.Background(), msg("goodbye"))
			r := link.Reason{Cause: link.ShuttingDown, Text: "restarting"}
			c.Close(r)
			return grpcserver.Status(r)
		}}
	})
	client := open(t, addr, grpcserver.DialOptions{})
	<-streams
	var err error
	stopped := async(func() { err = s.Stop(testContext(t)) })
	close(stopping)
	if got := receive(testContext(t), t, client); got != "goodbye" {
		t.Errorf("got %q, want %q", got, "goodbye")
	}
	if got := reasonOf(t, client); got.Code != int(codes.Unavailable) || got.Text != "restarting" {
		t.Errorf("got %v with code %d, want UNAVAILABLE: restarting", got, got.Code)
	}
	within(t, stopped, "Stop to return")
	if err != nil {
		t.Errorf("Stop: got %v, want nil", err)
	}
}

func TestStopClosesConnectionsThatDoNotEndInTime(t *testing.T) {
	streams, ended := make(chan *stream, 1), make(chan struct{})
	s, addr := serve(t, grpcserver.Options{}, func(s *grpcserver.Server) testService {
		return testService{chat: func(raw rawServer) error {
			defer close(ended)
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			streams <- c
			_, err = c.Receive(context.Background())
			return err
		}}
	})
	client := open(t, addr, grpcserver.DialOptions{})
	<-streams
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Stop: got %v, want the context's error", err)
	}
	select {
	case <-ended:
	default:
		t.Error("got a handler that still runs after Stop, want it ended")
	}
	if got := reasonOf(t, client); got.Cause != link.PeerGone {
		t.Errorf("client: got %v, want cause %v", got, link.PeerGone)
	}
}

func TestASilentConnectionDoesNotDelayStop(t *testing.T) {
	s := grpcserver.New(grpcserver.Options{ConnectTimeout: time.Hour})
	l := recordingListener{listen(t), make(chan net.Conn, 1)}
	served := async(func() { s.Serve(l) })
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	<-l.kept
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := async(func() { s.Stop(ctx) })
	within(t, stopped, "Stop to return")
	within(t, served, "Serve to return")
}

func TestASilentConnectionIsClosed(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{ConnectTimeout: 20 * time.Millisecond}, nothing)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(testTimeout))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got an open connection after %v, want it closed", testTimeout)
	}
}

func TestAConnectionBeyondTheLimitIsClosed(t *testing.T) {
	refused := make(chan net.Addr, 100)
	_, addr := serve(t, grpcserver.Options{
		MaxConnections: 1,
		OnRefused:      func(a net.Addr) { refused <- a },
	}, nothing)
	first, err := grpcserver.Dial(testContext(t), addr, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if cc, err := grpcserver.Dial(testContext(t), addr, grpcserver.DialOptions{}); err == nil {
		cc.Close()
		t.Fatal("second Dial: got nil, want an error")
	}
	if a := <-refused; !strings.HasPrefix(a.String(), "127.0.0.1:") {
		t.Errorf("OnRefused: got %v, want the peer's address", a)
	}
	first.Close()
	for { // the server needs a moment to notice
		cc, err := grpcserver.Dial(testContext(t), addr, grpcserver.DialOptions{})
		if err == nil {
			cc.Close()
			return
		}
		if status.Code(err) != codes.Unavailable {
			t.Fatalf("Dial once there is room: got %v, want nil", err)
		}
	}
}

func TestAPanicEndsOnlyItsCall(t *testing.T) {
	panics := make(chan string, 2)
	_, addr := serve(t, grpcserver.Options{
		OnPanic: func(method string, v any, stack []byte) {
			if !strings.Contains(string(stack), "server_test.go") {
				t.Errorf("stack: got\n%s\nwant one that shows the handler", stack)
			}
			panics <- method + " " + v.(string)
		},
	}, func(*grpcserver.Server) testService {
		return testService{
			chat: func(rawServer) error { panic("oops") },
			ask:  func(context.Context) (*message, error) { panic("ouch") },
		}
	})
	cc := dial(t, addr, grpcserver.DialOptions{})
	cs, err := chat(cc)(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.Recv(); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "oops") {
		t.Errorf("stream: got %v, want INTERNAL without details", err)
	}
	if got, want := <-panics, "/test.Talk/Chat oops"; got != want {
		t.Errorf("OnPanic: got %q, want %q", got, want)
	}
	if err := cc.Invoke(testContext(t), "/test.Talk/Ask", msg(""), new(message)); status.Code(err) != codes.Internal {
		t.Errorf("call: got %v, want INTERNAL", err)
	}
	if got, want := <-panics, "/test.Talk/Ask ouch"; got != want {
		t.Errorf("OnPanic: got %q, want %q", got, want)
	}
}

func TestACallThatIsNotAdmittedIsRefusedBeforeAnyHeaderIsSent(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{
		Admit: func(context.Context, string) (context.Context, error) {
			return nil, status.Error(codes.Unauthenticated, "unknown public key")
		},
	}, nothing)
	cs, err := chat(dial(t, addr, grpcserver.DialOptions{}))(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if md, err := cs.Header(); len(md) != 0 {
		t.Errorf("headers: got %v, %v, want none, only the refusal", md, err)
	}
	if _, err := cs.Recv(); status.Code(err) != codes.Unauthenticated {
		t.Errorf("got %v, want UNAUTHENTICATED", err)
	}
}

func TestTheHandlerGetsTheContextOfAdmit(t *testing.T) {
	type admitKey struct{}
	seen := make(chan any, 2)
	_, addr := serve(t, grpcserver.Options{
		Admit: func(ctx context.Context, method string) (context.Context, error) {
			return context.WithValue(ctx, admitKey{}, method), nil
		},
	}, func(*grpcserver.Server) testService {
		return testService{
			ask:  func(ctx context.Context) (*message, error) { seen <- ctx.Value(admitKey{}); return msg(""), nil },
			chat: func(raw rawServer) error { seen <- raw.Context().Value(admitKey{}); return nil },
		}
	})
	cc := dial(t, addr, grpcserver.DialOptions{})
	if err := cc.Invoke(testContext(t), "/test.Talk/Ask", msg(""), new(message)); err != nil {
		t.Fatal(err)
	}
	if got, want := <-seen, any("/test.Talk/Ask"); got != want {
		t.Errorf("a call: got %v, want %v", got, want)
	}
	cs, err := chat(cc)(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.Recv(); err != io.EOF {
		t.Fatalf("got %v, want %v", err, io.EOF)
	}
	if got, want := <-seen, any("/test.Talk/Chat"); got != want {
		t.Errorf("a stream: got %v, want %v", got, want)
	}
}

func TestMetadataOverTheLimitIsRefused(t *testing.T) {
	var called atomic.Bool
	_, addr := serve(t, grpcserver.Options{}, func(*grpcserver.Server) testService {
		return testService{ask: func(context.Context) (*message, error) { called.Store(true); return msg(""), nil }}
	})
	cc := dial(t, addr, grpcserver.DialOptions{})
	ctx := metadata.AppendToOutgoingContext(testContext(t), "x-big", strings.Repeat("x", 70_000))
	if err := cc.Invoke(ctx, "/test.Talk/Ask", msg(""), new(message)); err == nil || called.Load() {
		t.Errorf("got %v (handler called: %v), want an error before the handler", err, called.Load())
	}
	if err := cc.Invoke(testContext(t), "/test.Talk/Ask", msg(""), new(message)); err != nil {
		t.Errorf("the next call: got %v, want nil", err)
	}
}
