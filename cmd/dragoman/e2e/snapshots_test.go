package e2e

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// promptLines are the commands of a pi client that wants one answer.
func promptLines(key string) string {
	return `{"id":"1","type":"create_session","sessionId":"s","agent":"actor"}
{"id":"2","type":"switch_session","sessionId":"s"}
{"id":"3","type":"prompt","sessionId":"s","message":"say ` + key + "\"}\n"
}

// A client on stdio has no query string: its flag, or else the setting, decides whether deltas come
// with snapshots.
func TestStdioSendsPiSnapshotsAsRequested(t *testing.T) {
	for _, tt := range []struct {
		setting, flag string
		want          bool
	}{{"all", "", true}, {"all", "none", false}, {"none", "", false}, {"none", "all", true}} {
		h := newTestHub(t, func(c *config.Config) { c.Pi.Snapshots = tt.setting })
		h.startAgent(t, acp.Dialect, "actor", 1)
		args := []string{"stdio", "--hub", h.url()}
		if tt.flag != "" {
			args = append(args, "--snapshots", tt.flag)
		}
		code, stdout, stderr := runWith(t.Context(), promptLines(h.key()), args...)
		if code != command.ExitDone {
			t.Errorf("setting %q, flag %q: got %d and %q, want it done", tt.setting, tt.flag, code, stderr)
		}
		checkSnapshots(t, stdout, tt.want)
	}
}

func TestTheUnixSocketSendsPiSnapshotsAsConfigured(t *testing.T) {
	for setting, want := range map[string]bool{"all": true, "none": false} {
		h := newTestHub(t, func(c *config.Config) {
			c.Pi.Snapshots, c.PiSocket = setting, filepath.Join(t.TempDir(), "pi")
		})
		h.startAgent(t, acp.Dialect, "actor", 1)
		conn, err := net.Dial("unix", h.service.Addresses().PiSocket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(watchdog)) // local sockets support deadlines
		if _, err := io.WriteString(conn, promptLines(h.key())); err != nil {
			t.Fatal(err)
		}
		var received strings.Builder
		for r := bufio.NewReader(conn); !strings.Contains(received.String(), `{"id":"3","type":"response"`); {
			l, err := r.ReadString('\n')
			if received.WriteString(l); err != nil {
				t.Fatalf("setting %s: got %v behind %q, want the response", setting, err, received.String())
			}
		}
		checkSnapshots(t, received.String(), want)
	}
}

// checkSnapshots fails unless there are updates, and either some or none of them have the message
// so far.
func checkSnapshots(t *testing.T, lines string, want bool) {
	t.Helper()
	updates, snapshots := 0, 0
	for l := range strings.Lines(lines) {
		if strings.Contains(l, `"message_update"`) {
			updates++
			if strings.Contains(l, `"message":`) {
				snapshots++
			}
		}
	}
	if updates == 0 || (snapshots > 0) != want {
		t.Errorf("got %d updates of which %d have the message, want it to be %t that some have\n%s", updates, snapshots, want, lines)
	}
}
