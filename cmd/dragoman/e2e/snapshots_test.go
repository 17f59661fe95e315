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

// promptLines are what a client of lines sends for one answer.
func promptLines(key string) string {
	return `{"id":"1","type":"create_session","sessionId":"s","agent":"actor"}
{"id":"2","type":"switch_session","sessionId":"s"}
{"id":"3","type":"prompt","sessionId":"s","message":"say ` + key + "\"}\n"
}

// A client that has no address to ask in, such as one of lines, is told deltas
// without snapshots where its flag says so, or the hub.
func TestAPiClientOfLinesGetsTheSnapshotsThatAreAskedFor(t *testing.T) {
	for _, tt := range []struct {
		setting, flag string
		want          bool
	}{{"all", "", true}, {"all", "none", false}, {"none", "", false}, {"none", "all", true}} {
		s := newStage(t, func(c *config.Config) { c.Pi.Snapshots = tt.setting })
		s.cast(t, acp.Dialect, "actor", 1)
		args := []string{"stdio", "--hub", "http://" + s.service.Addresses().HTTP}
		if tt.flag != "" {
			args = append(args, "--snapshots", tt.flag)
		}
		var out, complaint earshot
		code := command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader(promptLines(s.key()))), Out: &out, Err: &complaint})
		if code != command.ExitDone {
			t.Errorf("setting %q, flag %q: got %d and %q, want it done", tt.setting, tt.flag, code, complaint.String())
		}
		checkSnapshots(t, out.String(), tt.want)
	}
}

func TestAPiClientOfTheUnixSocketGetsTheSnapshotsThatTheHubIsSetTo(t *testing.T) {
	for setting, want := range map[string]bool{"all": true, "none": false} {
		s := newStage(t, func(c *config.Config) {
			c.Pi.Snapshots, c.PiSocket = setting, filepath.Join(t.TempDir(), "pi")
		})
		s.cast(t, acp.Dialect, "actor", 1)
		conn, err := net.Dial("unix", s.service.Addresses().PiSocket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(watchdog)) // a socket of this machine has one
		if _, err := io.WriteString(conn, promptLines(s.key())); err != nil {
			t.Fatal(err)
		}
		var heard strings.Builder
		for r := bufio.NewReader(conn); !strings.Contains(heard.String(), `{"id":"3","type":"response"`); {
			l, err := r.ReadString('\n')
			if heard.WriteString(l); err != nil {
				t.Fatalf("setting %s: got %v behind %q, want the response", setting, err, heard.String())
			}
		}
		checkSnapshots(t, heard.String(), want)
	}
}

// checkSnapshots fails unless there are updates, and they have the message so far or
// none of them has.
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
