package e2e

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// TestNoListenerOfTheProcessAdmitsAnybodyWithoutACredential reads what a hub listens on from the kernel, so that
// it sees what a library opens as well, in each way in which hubs meet. What is not one of the listeners in
// docs/endpoints.md fails; the two of the embedded NATS server are dialled with what its clients say.
func TestNoListenerOfTheProcessAdmitsAnybodyWithoutACredential(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]struct {
		hubs func(t *testing.T) hubCluster
		// nats is how many listeners of a NATS server there are.
		nats int
	}{
		"alone":        {hubs: func(t *testing.T) hubCluster { c := newHubs(t, 1); c[0].start(); c[0].untilReady(); return c }},
		"embedded":     {hubs: func(t *testing.T) hubCluster { return startListening(newCluster(t, tier.Pick(1, 3))) }, nats: 2},
		"embedded TLS": {hubs: startClusterWithCertificates, nats: 2},
		"external":     {hubs: func(t *testing.T) hubCluster { return startHubsOn(t, startNATS(t, 1), 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := mode.hubs(t)[0]
			known := []string{strings.TrimPrefix(h.URL, "http://"), h.grpc, h.pi}
			listening := listenersOf(t, h.cmd.Process.Pid)
			for _, addr := range known {
				if !slices.Contains(listening, addr) {
					t.Errorf("the listeners of the process: got %q, want %s among them", listening, addr)
				}
			}
			others := slices.DeleteFunc(listening, func(addr string) bool { return slices.Contains(known, addr) })
			if len(others) != mode.nats {
				t.Errorf("beside http_addr, grpc_addr and pi_addr the process listens on %q, want %d of the NATS server: docs/endpoints.md names no other", others, mode.nats)
			}
			for _, addr := range others {
				for _, connect := range []string{
					`CONNECT {}`, `CONNECT {"user":"","pass":""}`, `CONNECT {"user":"hub","pass":"wrong"}`, `CONNECT {"user":"sys","pass":""}`, `CONNECT {"auth_token":"wrong"}`, `SUB > 1`,
				} {
					if answer := sayToNATS(t, addr, connect); strings.Contains(answer, "PONG") || strings.Contains(answer, "+OK") {
						t.Errorf("%s after %s: got %q, want it refused", addr, connect, answer)
					}
				}
			}
		})
	}
}

// startClusterWithCertificates starts hubs that know each other by certificates of files.
func startClusterWithCertificates(t *testing.T) hubCluster {
	cert, key := certificate(t, "127.0.0.1")
	c := newCluster(t, tier.Pick(1, 3))
	for _, h := range c {
		h.addConfig(fmt.Sprintf("  tls: {cert: %q, key: %q, ca: %q}\n", cert, key, cert))
	}
	return startListening(c)
}

// startListening starts the hubs of a cluster. One alone waits for the others, and listens like a ready one.
func startListening(c hubCluster) hubCluster {
	if len(c) > 1 {
		c.start()
		return c
	}
	c[0].start()
	const waits = "waiting for the first start of a cluster"
	c[0].until("the hub waits for others", func() error { return notYet(strings.Contains(c[0].log(), waits), c[0].log()) })
	return c
}

// sayToNATS says a line to a NATS server, then PING, and returns all that it answers until it closes the
// connection or sends a PONG.
func sayToNATS(t *testing.T, addr, line string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(watchdog)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, line+"\r\nPING\r\n"); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for r := bufio.NewReader(c); ; {
		answer, err := r.ReadString('\n')
		all.WriteString(answer)
		if os.IsTimeout(err) {
			t.Errorf("%s after %s: got %q and a connection that stays open, want it closed", addr, line, all.String())
		}
		if err != nil || strings.HasPrefix(answer, "PONG") {
			return all.String()
		}
	}
}

// listenersOf returns the TCP addresses on which a process listens (proc(5): net/tcp, fd).
func listenersOf(t *testing.T, pid int) (all []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of process %d: got %d, %v", pid, len(files), err)
	}
	sockets := map[string]bool{}
	for _, f := range files {
		target, _ := os.Readlink(f) // it may have been closed
		if inode, is := strings.CutPrefix(target, "socket:["); is {
			sockets[strings.TrimSuffix(inode, "]")] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			const local, state, inode, listening = 1, 3, 9, "0A"
			f := strings.Fields(line)
			if len(f) > inode && f[state] == listening && sockets[f[inode]] {
				all = append(all, addressOf(t, f[local]))
			}
		}
	}
	return all
}

// addressOf reads an address as the kernel writes it: words of the machine's byte order, then the port.
func addressOf(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	ip, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for word := range slices.Chunk(ip, 4) {
		slices.Reverse(word)
	}
	n, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(ip).String(), strconv.FormatUint(n, 10))
}
