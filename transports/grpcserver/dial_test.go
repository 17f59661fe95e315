package grpcserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

func TestDialWithoutAServerIsUnavailable(t *testing.T) {
	l := listen(t)
	l.Close()
	cc, err := grpcserver.Dial(testContext(t), l.Addr().String(), grpcserver.DialOptions{})
	if err == nil {
		cc.Close()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v, want UNAVAILABLE", err)
	}
}

func TestDialEndsWithItsContext(t *testing.T) {
	l := listen(t) // accepts in the kernel and never answers
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	cc, err := grpcserver.Dial(ctx, l.Addr().String(), grpcserver.DialOptions{})
	if err == nil {
		cc.Close()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestDialAcceptsAServerThatRefusesHealthChecks(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{
		Admit: func(context.Context, string) (context.Context, error) {
			return nil, status.Error(codes.Unauthenticated, "missing authorization header")
		},
	}, nothing)
	dial(t, addr, grpcserver.DialOptions{})
}

func TestOpenSendsTheMetadataOfItsContextAndOutlivesIt(t *testing.T) {
	got := make(chan []string, 1)
	_, addr := serve(t, grpcserver.Options{}, func(s *grpcserver.Server) testService {
		return testService{chat: func(raw rawServer) error {
			md, _ := metadata.FromIncomingContext(raw.Context())
			got <- md.Get("x-name")
			c, err := grpcserver.Accept(s, raw)
			if err != nil {
				return err
			}
			m, err := c.Receive(raw.Context())
			if err != nil {
				return err
			}
			return c.Send(raw.Context(), m)
		}}
	})
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(testContext(t), "x-name", "ada"))
	c, err := grpcserver.Open(ctx, chat(dial(t, addr, grpcserver.DialOptions{})))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(link.Reason{Cause: link.Normal})
	cancel()
	if got := <-got; len(got) != 1 || got[0] != "ada" {
		t.Errorf("metadata: got %v, want ada", got)
	}
	if err := c.Send(testContext(t), msg("hello")); err != nil {
		t.Errorf("Send: got %v, want nil", err)
	}
	if got := receive(testContext(t), t, c); got != "hello" {
		t.Errorf("got %q, want %q", got, "hello")
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	_, addr := serve(t, grpcserver.Options{}, nothing)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if c, err := grpcserver.Open(ctx, chat(dial(t, addr, grpcserver.DialOptions{}))); err == nil {
		c.Close(link.Reason{Cause: link.Normal})
		t.Error("got nil, want an error")
	}
}

func TestTheConnectionCanBeEncrypted(t *testing.T) {
	cert := httptest.NewTLSServer(nil) // for its certificate
	defer cert.Close()
	roots := x509.NewCertPool()
	roots.AddCert(cert.Certificate())
	addr, accepted, release := accepting(t, grpcserver.Options{TLS: &tls.Config{Certificates: cert.TLS.Certificates}})
	client := open(t, addr, grpcserver.DialOptions{TLS: &tls.Config{RootCAs: roots}})
	if err := (<-accepted).Send(testContext(t), msg("secret")); err != nil {
		t.Fatal(err)
	}
	if got := receive(testContext(t), t, client); got != "secret" {
		t.Errorf("got %q, want %q", got, "secret")
	}
	release(link.Reason{Cause: link.Normal})
	ctx, cancel := context.WithTimeout(testContext(t), time.Second)
	defer cancel()
	if cc, err := grpcserver.Dial(ctx, addr, grpcserver.DialOptions{}); err == nil {
		cc.Close()
		t.Error("Dial in plain text: got nil, want an error")
	}
}
