package pi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// shellClient is a client with a session in a new directory, in which it may run programs.
type shellClient struct {
	*testClient
	hub    *hub.Hub
	server *pi.Server
	dir    string
}

func newShell(t *testing.T, opts pi.Options) *shellClient {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opts.Bash, opts.Reaper = true, []string{self, reaperArgument}
	h, s := newServer(t, opts)
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.ok(string(strictjson.Encode(map[string]string{"type": "create_session", "sessionId": "s", "agent": "a", "cwd": dir})))
	c.ok(`{"type":"switch_session","sessionId":"s"}`)
	return &shellClient{c, h, s, dir}
}

// bashFrame is the command that runs a program.
func bashFrame(id, command string, more ...string) string {
	m := map[string]any{"type": "bash", "sessionId": "s", "command": command}
	if id != "" {
		m["id"] = id
	}
	for _, name := range more {
		m[name] = true
	}
	return string(strictjson.Encode(m))
}

// bashResult is the data of the response to bash.
type bashResult struct {
	ExitCode               int
	Output                 string
	Cancelled, Truncated   bool
	TotalBytes, TotalLines int64
}

// runs runs a program and returns its result.
func (c *testClient) runs(id, command string, more ...string) bashResult {
	c.t.Helper()
	var r bashResult
	if err := json.Unmarshal(c.ok(bashFrame(id, command, more...)).Data, &r); err != nil {
		c.t.Fatal(err)
	}
	return r
}

// pidIn waits for the file in which a program writes its process id, and returns the id.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	for end := time.Now().Add(testTimeout); time.Now().Before(end); {
		b, err := os.ReadFile(path)
		if text, whole := strings.CutSuffix(string(b), "\n"); err == nil && whole {
			pid, err := strconv.Atoi(text)
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("%s: no id of a process", path)
	return 0
}
