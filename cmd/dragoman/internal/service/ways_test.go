package service_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/audit"
)

// way is a way into the hub: send comes with a header of HTTP or metadata of gRPC and reports
// whether the credential was accepted.
type way struct {
	name   string
	object string // of its entry
	send   func(t *testing.T, header, value string) bool
}

// ways returns every way into a hub over the network.
func ways(at service.Addresses) []way {
	over := func(name, object, method, url, body string, token func(*http.Request, string, string)) way {
		return way{name, object, func(t *testing.T, header, value string) bool {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			token(r, header, value)
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
			return resp.StatusCode != http.StatusUnauthorized && !bytes.Contains(text, []byte("token"))
		}}
	}
	inHeader := func(r *http.Request, header, value string) { r.Header.Set(header, value) }
	inPath := func(r *http.Request, _, value string) { r.URL.Path += "/" + strings.TrimPrefix(value, "Bearer ") }
	http, ping := "http://"+at.HTTP, `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	all := []way{
		over("REST", "http", "GET", http+"/v1/agents", "", inHeader),
		over("native", "http", "GET", http+"/ws/native", "", inHeader),
		over("Parallax", "http", "GET", http+"/ws/agent", "", inHeader),
		over("ACP", "http", "GET", http+"/ws/acp", "", inHeader),
		over("editors", "http", "GET", http+"/ws/editor", "", inHeader),
		over("pi", "http", "GET", http+"/ws/pi", "", inHeader),
		over("pi's own address", "http", "GET", "http://"+at.Pi+"/", "", inHeader),
		over("A2A", "http", "POST", http+"/a2a", `{}`, inHeader),
		over("MCP", "mcp", "POST", http+"/mcp", ping, inHeader),
		over("MCP in the path", "mcp", "POST", http+"/mcp", ping, inPath),
	}
	for _, method := range []string{"/coven.ClientService/ListAgents", "/parallax.registry.Registry/ListAgents"} {
		all = append(all, way{"gRPC " + method, "grpc", func(t *testing.T, header, value string) bool {
			t.Helper()
			conn, err := grpc.NewClient(at.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			ctx := metadata.AppendToOutgoingContext(t.Context(), strings.ToLower(header), value)
			return status.Code(conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})) != codes.Unauthenticated
		}})
	}
	return all
}

// TestEveryWayInHasItsEntry comes in over every transport, with each kind of credential in a
// header and with wrong ones, and wants one entry for each without a part of the credential.
func TestEveryWayInHasItsEntry(t *testing.T) {
	dir := t.TempDir()
	const root = "root-secret-0123456789"
	var tokens bytes.Buffer
	fmt.Fprintf(&tokens, "tokens:\n  - {principal: root, operator: true, sha256: %x}\n", sha256.Sum256([]byte(root)))
	for i := range 40 {
		fmt.Fprintf(&tokens, "  - {principal: p%d, sha256: %x}\n", i, sha256.Sum256(fmt.Appendf(nil, "good-secret-0123456789-%d", i)))
	}
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.Auth.Tokens = filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, tokens.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(t *testing.T) *service.Service {
		t.Helper()
		s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			stop, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.Stop(stop, "test"); err != nil {
				t.Errorf("stopping: got %v, want no error", err)
			}
		})
		return s
	}
	entries := func(t *testing.T, s *service.Service) (all []audit.Line) {
		t.Helper()
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addresses().HTTP+"/v1/audit?limit=1000", nil)
		r.Header.Set("X-API-Key", root)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			var l audit.Line
			if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(lines.Text(), "0123456789") {
				t.Errorf("got %s, want no credential", lines.Text())
			}
			if l.Act == audit.ActConnect && l.Principal != "root" {
				all = append(all, l)
			}
		}
		return all
	}
	principal := 0
	for _, w := range ways(service.Addresses{}) {
		t.Run(w.name, func(t *testing.T) {
			s := start(t) // a minute has ten refusals with an entry of their own
			for _, one := range ways(s.Addresses()) {
				if one.name == w.name {
					w = one
				}
			}
			headers := [][2]string{{"Authorization", "Bearer %s"}}
			if w.name != "MCP in the path" {
				headers = append(headers, [2]string{"X-API-Key", "%s"})
			}
			seen := 0
			for _, h := range headers {
				for range 2 { // the second time the same principal comes from the same place
					if !w.send(t, h[0], fmt.Sprintf(h[1], fmt.Sprintf("good-secret-0123456789-%d", principal))) {
						t.Errorf("%s: got refused, want a good token accepted", h[0])
					}
				}
				if w.send(t, h[0], fmt.Sprintf(h[1], "bad-secret-0123456789")) {
					t.Errorf("%s: got accepted, want a bad token refused", h[0])
				}
				all := entries(t, s)[seen:]
				want := []audit.Line{{Principal: fmt.Sprintf("p%d", principal), Outcome: audit.OK}, {Outcome: "unauthenticated"}}
				if len(all) != len(want) {
					t.Fatalf("%s: got the entries %+v, want one for who came in and one for who was refused", h[0], all)
				}
				for i, l := range all {
					if l.Principal != want[i].Principal || l.Outcome != want[i].Outcome || l.Object != w.object+" 127.0.0.1" || l.Count != 0 {
						t.Errorf("%s: got %+v, want %s %s over %s", h[0], l, want[i].Principal, want[i].Outcome, w.object)
					}
				}
				seen += len(all)
				principal++
			}
			if w.send(t, "X-Nothing", "") {
				t.Error("got accepted without a credential, want refused")
			}
			if all := entries(t, s)[seen:]; len(all) != 1 || all[0].Outcome != "unauthenticated" {
				t.Errorf("without a credential: got %+v, want one refusal", all)
			}
		})
	}
}

// The endpoint of MCP judges credentials itself: connections with a bad token stay in the share of those
// that have not authenticated.
func TestABadTokenOverMCPDoesNotAuthenticateTheConnection(t *testing.T) {
	const good = "anas-secret-0123456789"
	c := config.Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr, c.HTTP.Connections = "", "127.0.0.1:0", "", 64
	c.Auth.Tokens = filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(c.Auth.Tokens, fmt.Appendf(nil, "tokens:\n  - {principal: ana, sha256: %x}\n", sha256.Sum256([]byte(good))), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Stop(stop, "test"); err != nil {
			t.Errorf("stopping: got %v, want no error", err)
		}
	}()
	again := func(conn net.Conn, r *bufio.Reader, token string) int {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		if token != good {
			body = "" // an answer before a body ends the connection
		}
		fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s", token, len(body), body)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	ping := func(token string) (net.Conn, *bufio.Reader, int) {
		t.Helper()
		conn, err := net.Dial("tcp", s.Addresses().HTTP)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		r := bufio.NewReader(conn)
		return conn, r, again(conn, r, token)
	}
	proven, provenReader, status := ping(good)
	if status != http.StatusOK {
		t.Fatalf("a good token: got %d, want 200", status)
	}
	oldest, oldestReader, status := ping("bad-0123456789")
	if status != http.StatusUnauthorized {
		t.Fatalf("a bad token: got %d, want 401", status)
	}
	for range 20 { // more than the share of 16
		ping("bad-0123456789")
	}
	_ = oldest.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := oldestReader.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first connection with a bad token: got %v, want it closed to make room", err)
	}
	if status := again(proven, provenReader, good); status != http.StatusOK {
		t.Errorf("the connection with a good token: got %d, want 200 there", status)
	}
}
