package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// inNamespace is the variable of the test process that has a network of its own.
const inNamespace = "TEST_HAS_A_NETWORK"

// elsewhere is an address of that network which is not loopback (RFC 5737).
const elsewhere = "192.0.2.1"

func TestAHubBeyondLoopbackIsReachedByTLS(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		inNetwork(t)
		return
	}
	h := newTestHub(t, func(c *config.Config) {
		c.GRPCAddr, c.HTTPAddr, c.PiAddr = "0.0.0.0:0", elsewhere+":0", elsewhere+":0"
		c.TLS.Cert, c.TLS.Key = certificate(t, elsewhere)
		c.Auth.Tokens = tokensFile(t, "root")
	})
	_, port, _ := net.SplitHostPort(h.service.Addresses().HTTP)
	at := net.JoinHostPort(elsewhere, port)
	if code, _, stderr := run(t, "agents", "--hub", "https://"+at, "--ca", h.config.TLS.Cert, "--token", "root"); code != command.ExitDone {
		t.Errorf("by TLS: got %d %q, want %d", code, stderr, command.ExitDone)
	}
	if code, _, stderr := run(t, "agents", "--hub", "http://"+at, "--token", "root"); code != command.ExitUsage || !strings.Contains(stderr, "unencrypted") {
		t.Errorf("in clear: got %d %q, want it refused", code, stderr)
	}
	if code, _, stderr := run(t, "agents", "--hub", "https://"+at, "--ca", h.config.TLS.Cert); code == command.ExitDone || !strings.Contains(stderr, "the hub asks for a token") {
		t.Errorf("without a token: got %d %q, want it refused", code, stderr)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// The gRPC address is asked of the hub.
		runWith(t.Context(), "", "agent", "--hub", "https://"+at, "--ca", h.config.TLS.Cert, "--token", "root", "--name", "root", "--", "tr", "a-z", "A-Z")
	}()
	t.Cleanup(func() { <-ended })
	h.await(t, "joined root")
}

// inNetwork runs the test again, in a network namespace of its own.
func inNetwork(t *testing.T) {
	ip, err := exec.LookPath("ip")
	if err != nil {
		notRun(t, "there is no ip command: "+err.Error())
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const setUp = `"$0" link set lo up && "$0" address add ` + elsewhere + `/32 dev lo || exit 77; exec "$@"`
	cmd := exec.Command("sh", "-c", setUp, ip, self, "-test.run", "^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNamespace+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case err != nil && cmd.ProcessState == nil, err != nil && cmd.ProcessState.ExitCode() == 77:
		notRun(t, "this machine makes no network namespace: "+err.Error()+" "+string(out))
	case err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()):
		t.Errorf("in a network of its own: got %v\n%s", err, out)
	default:
		t.Logf("in a network of its own:\n%s", out)
	}
}

// pcapFile is the variable with the file that keeps what TestTheWireBeyondLoopbackHasNothingButTLS
// has recorded, for tcpdump -r and Wireshark.
const pcapFile = "PCAP"

// TestTheWireBeyondLoopbackHasNothingButTLS brings every credential over every surface to a hub
// beyond loopback, and records the network: what passes the listeners is TLS to the last byte, and
// nothing of a credential, a request or an answer is in it.
func TestTheWireBeyondLoopbackHasNothingButTLS(t *testing.T) {
	tier.Full(t, "it records a network of its own")
	t.Parallel()
	if os.Getenv(inNamespace) == "" {
		inNetwork(t)
		return
	}
	wire := recordLoopback(t)
	change, kinds := credentialKinds(t)
	h, err := newCredentialHub(newTestHub(t, func(c *config.Config) {
		change(c)
		c.GRPCAddr, c.HTTPAddr, c.PiAddr = elsewhere+":0", elsewhere+":0", elsewhere+":0"
		c.TLS.Cert, c.TLS.Key = certificate(t, elsewhere)
	}))
	if err != nil {
		t.Fatal(err)
	}
	joinEcho(t, h.testHub)
	for _, s := range surfaces() {
		for _, k := range kinds {
			if s.carries&k.ways == 0 || s.waits {
				continue
			}
			if who, err := s.enter(t, h, h.noted(k.good), k.who); err != nil || !strings.HasPrefix(who, k.who+",") {
				t.Errorf("%s, %s: got %q, %v, want %s", s.name, k.name, who, err, k.who)
			}
			for _, wrong := range k.wrong {
				if who, err := s.enter(t, h, h.noted(wrong.bring), k.who); err == nil {
					t.Errorf("%s, %s %s: got %q, want it refused", s.name, k.name, wrong.name, who)
				}
			}
		}
	}
	at := h.service.Addresses()
	listeners := map[string]string{"gRPC": at.GRPC, "HTTP": at.HTTP, "pi-server": at.Pi}
	port := 20_000 // below those that the system chooses: the recording tells connections apart by their ports
	for name, addr := range listeners {
		port++
		if answer := inClear(t, port, addr); strings.Contains(answer, "200 OK") || strings.Contains(answer, "401") {
			t.Errorf("%s, without TLS: got %q, want nothing of the hub", name, answer)
		}
	}
	plain := newTestHub(t, nil) // what the recording finds where there is no TLS
	if code, _, stderr := run(t, "agents", "--hub", plain.url(), "--token", "a-token-in-clear"); code != command.ExitDone {
		t.Errorf("without TLS: got %d and %s", code, stderr)
	}
	wire.stop()
	if path := os.Getenv(pcapFile); path != "" {
		if err := os.WriteFile(path, wire.file.Bytes(), 0o600); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Contains(wire.file.Bytes(), []byte("a-token-in-clear")) {
		t.Error("without TLS: got no token in the recording, want it to find one")
	}
	h.wantNoSecret(t, "the network", wire.file.String())
	for name, addr := range listeners {
		connections, sent, gaps := 0, 0, 0
		for way, s := range wire.streams {
			if way.from != addr && way.to != addr || bytes.HasPrefix(s.payload, []byte(inClearRequest)) || way.from == addr && isClearAnswer(s.payload) {
				continue
			}
			connections++
			sent += len(s.payload)
			if s.gap {
				gaps++
			}
			if bad := s.notTLS(); bad != nil && !s.gap {
				t.Errorf("%s: got %q from %s to %s, want TLS only", name, bad, way.from, way.to)
			}
			for _, text := range []string{"authenticated true", "AgentStream", "/v1/tasks", "Bearer ", "server_ready", "jsonrpc"} {
				if bytes.Contains(s.payload, []byte(text)) {
					t.Errorf("%s: got %q from %s to %s, want nothing in clear", name, text, way.from, way.to)
				}
			}
		}
		if connections < 10 || sent < 10_000 {
			t.Errorf("%s: got %d bytes in %d directions, want those of all its clients", name, sent, connections)
		}
		t.Logf("%s: %d bytes in %d directions, %d of them with gaps", name, sent, connections, gaps)
	}
}

// inClearRequest is what somebody without TLS sends.
const inClearRequest = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// inClear sends it from a port and returns the answer.
func inClear(t *testing.T, port int, addr string) string {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(elsewhere), Port: port}}
	conn, err := from.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, inClearRequest)
	answer, _ := io.ReadAll(conn) // a listener may just close
	return string(answer)
}

// isClearAnswer reports whether bytes are the answer of net/http to somebody without TLS.
func isClearAnswer(payload []byte) bool {
	return bytes.HasPrefix(payload, []byte("HTTP/1.0 400 Bad Request"))
}
