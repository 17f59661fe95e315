package grpcserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

func TestMessagesKeepTheirOrderBothWays(t *testing.T) {
	ctx := testContext(t)
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	const n = 5000
	for _, way := range []struct {
		name     string
		from, to *stream
	}{{"to the server", client, server}, {"to the client", server, client}} {
		sent := async(func() {
			for i := range n {
				if err := way.from.Send(ctx, msg(fmt.Sprint(i))); err != nil {
					t.Errorf("%s: Send: got %v, want nil", way.name, err)
					return
				}
			}
		})
		for i := range n {
			if got, want := receive(ctx, t, way.to), fmt.Sprint(i); got != want {
				t.Fatalf("%s: got message %s, want %s", way.name, got, want)
			}
		}
		within(t, sent, "all messages sent")
	}
}

func TestHeadersArriveBeforeTheFirstMessage(t *testing.T) {
	addr, accepted, release := accepting(t, grpcserver.Options{})
	cs, err := chat(dial(t, addr, grpcserver.DialOptions{}))(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.Header(); err != nil {
		t.Errorf("Header: got %v, want nil", err)
	}
	<-accepted
	release(link.Reason{Cause: link.Normal})
	if _, err := cs.Recv(); err != io.EOF {
		t.Errorf("end: got %v, want EOF", err)
	}
}

func TestAnOversizedMessageIsRefusedAndTheStreamSurvives(t *testing.T) {
	ctx := testContext(t)
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	for _, way := range []struct {
		name     string
		from, to *stream
	}{{"to the client", server, client}, {"to the server", client, server}} {
		big := &message{Value: make([]byte, grpcserver.DefaultMaxMessageBytes)}
		err := way.from.Send(ctx, big)
		var got *link.Reject
		if !errors.As(err, &got) {
			t.Fatalf("%s: Send: got %v, want a *link.Reject", way.name, err)
		}
		size, ok := way.from.Fits(big)
		want := link.Reject{Cause: link.TooLarge, Text: got.Text, Size: size, Limit: grpcserver.DefaultMaxMessageBytes}
		if *got != want || ok {
			t.Errorf("%s: got %+v (fits: %v), want %+v", way.name, *got, ok, want)
		}
		if err := way.from.Send(ctx, msg("after")); err != nil {
			t.Fatalf("%s: Send after the refusal: got %v, want nil", way.name, err)
		}
		if got := receive(ctx, t, way.to); got != "after" {
			t.Errorf("%s: got %q, want %q", way.name, got, "after")
		}
	}
}

func TestAMessageOfExactlyTheLimitPasses(t *testing.T) {
	ctx := testContext(t)
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	m := &message{Value: make([]byte, grpcserver.DefaultMaxMessageBytes-5)} // a tag and four bytes of length
	if size, ok := server.Fits(m); size != grpcserver.DefaultMaxMessageBytes || !ok {
		t.Fatalf("Fits: got %d, %v, want %d, true", size, ok, grpcserver.DefaultMaxMessageBytes)
	}
	sent := async(func() {
		if err := server.Send(ctx, m); err != nil {
			t.Errorf("Send: got %v, want nil", err)
		}
	})
	if got, want := len(receive(ctx, t, client)), len(m.Value); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
	within(t, sent, "the message sent")
}

func TestABatchSkipsOnlyMessagesThatAreTooLarge(t *testing.T) {
	ctx := testContext(t)
	server, client := pair(t, grpcserver.Options{MaxMessageBytes: 100}, grpcserver.DialOptions{})
	err := server.SendBatch(ctx, []*message{msg("one"), msg(strings.Repeat("x", 100)), msg("two")})
	var reject *link.Reject
	if !errors.As(err, &reject) || reject.Limit != 100 {
		t.Errorf("SendBatch: got %v, want a *link.Reject with limit 100", err)
	}
	for _, want := range []string{"one", "two"} {
		if got := receive(ctx, t, client); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestAMessageOverTheLimitEndsTheStreamAsTooLarge(t *testing.T) {
	server, client := pair(t, grpcserver.Options{MaxMessageBytes: 100}, grpcserver.DialOptions{})
	if err := client.Send(testContext(t), msg(strings.Repeat("x", 200))); err != nil {
		t.Fatal(err)
	}
	for _, end := range []struct {
		name string
		conn *stream
	}{{"server", server}, {"client", client}} {
		r := reasonOf(t, end.conn)
		if r.Cause != link.TooLarge || r.Code != int(codes.ResourceExhausted) {
			t.Errorf("%s: got %v with code %d, want %v with code %d", end.name, r, r.Code, link.TooLarge, codes.ResourceExhausted)
		}
	}
}

// raw is a codec that sends bytes unchanged.
type raw struct{}

func (raw) Name() string                  { return "proto" }
func (raw) Marshal(v any) ([]byte, error) { return v.([]byte), nil }
func (raw) Unmarshal([]byte, any) error   { return nil }

var _ encoding.Codec = raw{}

func TestAnInvalidMessageEndsTheStreamAsProtocol(t *testing.T) {
	addr, accepted, release := accepting(t, grpcserver.Options{})
	cc := dial(t, addr, grpcserver.DialOptions{})
	cs, err := cc.NewStream(testContext(t), &testServiceDesc.Streams[0], "/test.Talk/Chat", grpc.ForceCodec(raw{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := cs.SendMsg([]byte{0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	if got := reasonOf(t, <-accepted); got.Cause != link.Protocol {
		t.Errorf("got %v, want cause %v", got, link.Protocol)
	}
	release(link.Reason{Cause: link.Protocol})
}

func TestAHalfCloseIsAProperEnd(t *testing.T) {
	addr, accepted, release := accepting(t, grpcserver.Options{})
	cs, err := chat(dial(t, addr, grpcserver.DialOptions{}))(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	cs.CloseSend()
	server := <-accepted
	if _, err := server.Receive(testContext(t)); err != io.EOF {
		t.Errorf("server: got %v, want EOF", err)
	}
	if err := server.Send(testContext(t), msg("last")); err != nil {
		t.Errorf("Send after the half-close of the peer: got %v, want nil", err)
	}
	release(link.Reason{Cause: link.PeerGone})
	if m, err := cs.Recv(); err != nil || string(m.Value) != "last" {
		t.Errorf("client: got %v, %v, want the last message", m, err)
	}
	if _, err := cs.Recv(); err != io.EOF {
		t.Errorf("client: got %v, want EOF", err)
	}
}

func TestAClientThatCancelsIsGone(t *testing.T) {
	server, client := pair(t, grpcserver.Options{}, grpcserver.DialOptions{})
	client.Close(link.Reason{Cause: link.PeerGone})
	if got := reasonOf(t, server); got.Cause != link.PeerGone {
		t.Errorf("got %v, want cause %v", got, link.PeerGone)
	} else if got.Text != "context canceled" || got.Err != nil {
		t.Errorf("got the text %q and the detail %v, want the text of the status once", got.Text, got.Err)
	}
}

func TestALinkRunsOverEachEnd(t *testing.T) {
	joined := make(chan link.Reason, 1)
	_, addr := serve(t, grpcserver.Options{}, func(s *grpcserver.Server) testService {
		return testService{chat: func(raw rawServer) error {
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			l := link.New(c, link.Options{})
			r := l.Run(context.Background(), func(ctx context.Context, m *message) error {
				if string(m.Value) == "bye" {
					return link.Because(link.Replaced, "replaced by a newer one")
				}
				return l.Send(ctx, m, len(m.Value))
			}, nil)
			joined <- r // both loops have ended before the handler returns
			return grpcserver.Status(r)
		}}
	})
	l := link.New(open(t, addr, grpcserver.DialOptions{}), link.Options{})
	const n = 1000
	sent := async(func() {
		for i := range n {
			l.Send(context.Background(), msg(fmt.Sprint(i)), 4)
		}
	})
	got := 0
	r := l.Run(testContext(t), func(ctx context.Context, m *message) error {
		if string(m.Value) != fmt.Sprint(got) {
			t.Errorf("got echo %s, want %d", m.Value, got)
		}
		if got++; got == n {
			return l.Send(ctx, msg("bye"), 3)
		}
		return nil
	}, nil)
	within(t, sent, "all messages sent")
	if r.Code != int(codes.Aborted) || r.Text != "replaced by a newer one" || got != n {
		t.Errorf("client: got %v with code %d after %d echoes, want ABORTED after %d", &r, r.Code, got, n)
	}
	if r := <-joined; r.Cause != link.Replaced {
		t.Errorf("server: got %v, want cause %v", &r, link.Replaced)
	}
}

// recordingListener passes on the connections that it accepts, so that a test can close them.
type recordingListener struct {
	net.Listener
	kept chan net.Conn
}

func (k recordingListener) Accept() (net.Conn, error) {
	conn, err := k.Listener.Accept()
	if err == nil {
		k.kept <- conn
	}
	return conn, err
}

func TestALostConnectionIsReportedAtBothEnds(t *testing.T) {
	s := grpcserver.New(grpcserver.Options{})
	atServer := make(chan *link.Reason, 1)
	s.Register(&testServiceDesc, testService{chat: func(raw rawServer) error {
		c, err := grpcserver.Accept(s, raw)
		if err != nil {
			return err
		}
		receive(testContext(t), t, c)
		atServer <- nil
		r := reasonOf(t, c)
		atServer <- r
		return grpcserver.Status(*r)
	}})
	l := recordingListener{listen(t), make(chan net.Conn, 10)}
	served := async(func() { s.Serve(l) })
	client := open(t, l.Addr().String(), grpcserver.DialOptions{})
	client.Send(testContext(t), msg("hello"))
	<-atServer
	(<-l.kept).Close()
	if got := reasonOf(t, client); got.Cause != link.PeerGone {
		t.Errorf("client: got %v, want cause %v", got, link.PeerGone)
	}
	if got := <-atServer; got.Cause != link.PeerGone {
		t.Errorf("server: got %v, want cause %v", got, link.PeerGone)
	}
	s.Stop(testContext(t))
	within(t, served, "Serve to return")
}

func TestAPushStreamEndsWithItsClient(t *testing.T) {
	ended := make(chan error, 1)
	_, addr := serve(t, grpcserver.Options{}, func(s *grpcserver.Server) testService {
		return testService{push: func(raw grpc.ServerStreamingServer[message]) error {
			c, err := grpcserver.AcceptPush(s, raw)
			if err != nil {
				return err
			}
			if err = c.Send(raw.Context(), msg("pushed")); err == nil {
				_, err = c.Receive(context.Background())
			}
			ended <- err
			return err
		}}
	})
	ctx, cancel := context.WithCancel(testContext(t))
	cs, err := dial(t, addr, grpcserver.DialOptions{}).NewStream(ctx, &testServiceDesc.Streams[1], "/test.Talk/Push")
	if err != nil {
		t.Fatal(err)
	}
	cs.SendMsg(msg("start"))
	cs.CloseSend()
	got := new(message)
	if err := cs.RecvMsg(got); err != nil || string(got.Value) != "pushed" {
		t.Errorf("got %v, %v, want the pushed message", got, err)
	}
	cancel()
	var r *link.Reason
	if err := <-ended; !errors.As(err, &r) || r.Cause != link.PeerGone {
		t.Errorf("got %v, want cause %v", err, link.PeerGone)
	}
}
