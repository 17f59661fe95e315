package e2e

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
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
	}
}
