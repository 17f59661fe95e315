package service

import (
	"context"
	"net"
	"net/http"
	"testing"
)

func TestAgentsAreToldAnEndpointThatTheyReach(t *testing.T) {
	at := func(addr string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, tt := range []struct{ bound, to, from, want string }{
		{"127.0.0.1:8080", "127.0.0.1:50051", "127.0.0.1:40000", "http://127.0.0.1:8080/mcp"},
		{"127.0.0.1:8080", "192.0.2.1:50051", "192.0.2.1:40000", "http://127.0.0.1:8080/mcp"},
		{"127.0.0.1:8080", "192.0.2.1:50051", "192.0.2.9:40000", ""},
		{"192.0.2.1:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"0.0.0.0:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"0.0.0.0:8080", "127.0.0.1:50051", "127.0.0.1:40000", "http://127.0.0.1:8080/mcp"},
		{"0.0.0.0:8080", "[2001:db8::1]:50051", "[2001:db8::9]:40000", ""},
		{"0.0.0.0:8080", "[::1]:50051", "[::1]:40000", "http://127.0.0.1:8080/mcp"},
		{"[::]:8080", "192.0.2.1:50051", "192.0.2.9:40000", "http://192.0.2.1:8080/mcp"},
		{"[::]:8080", "[2001:db8::1]:50051", "[2001:db8::9]:40000", "http://[2001:db8::1]:8080/mcp"},
		{"[::]:8080", "[fe80::1%eth0]:50051", "[fe80::9%eth0]:40000", "http://[fe80::1%25eth0]:8080/mcp"},
		{"", "127.0.0.1:50051", "127.0.0.1:40000", ""},
	} {
		if got := endpoint(tt.bound, at(tt.to), at(tt.from)); got != tt.want {
			t.Errorf("HTTP at %q, gRPC at %s, from %s: got %q, want %q", tt.bound, tt.to, tt.from, got, tt.want)
		}
	}
	if got := endpoint("[::]:8080", nil, nil); got != "" {
		t.Errorf("to nobody: got %q, want none", got)
	}
}

func TestATokenStandsInNoLog(t *testing.T) {
	for path, want := range map[string]string{"/mcp/secret": "/mcp/…", "/mcp": "/mcp", "/v1/tasks": "/v1/tasks"} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := pathOf(r); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
