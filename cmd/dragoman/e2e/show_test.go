package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// geminiSettings are the settings of a hub with Gemini CLI as its agent.
const geminiSettings = `http_addr: 127.0.0.1:0
grpc_addr: 127.0.0.1:0
pi_addr: 127.0.0.1:0
pi: {session_dir: ""}
agents:
  - name: gemini
    dialect: editor
    command: $command
    cwd: $cwd
    env: $env
`

// settingsFile returns the settings of a file as dragoman serve --config reads them.
func settingsFile(t *testing.T, yaml string) config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dragoman.yaml")
	err := os.WriteFile(path, []byte(yaml), 0o600)
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err == nil {
		err = flags.Parse([]string{"--config", path})
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hungIn matches the prompt in a request to the model.
var hungIn = regexp.MustCompile(`hang (k\d+)`)

// Ten lines of settings make Gemini CLI an agent that is asked in every dialect, and whose permission
// requests are approved in another dialect than the one that asked.
func TestEveryDialectAsksGeminiCLI(t *testing.T) {
	t.Parallel()
	var h *testHub
	ready := make(chan struct{}) // h is set
	process := installGemini(t, &gemini{midway: func(r *http.Request, body string) {
		<-ready
		if prompt := hungIn.FindStringSubmatch(body); prompt != nil {
			_, _ = h.wait(r.Context(), prompt[1]+" released") // or its agent has gone
		}
	}})
	settings := settingsFile(t, os.Expand(geminiSettings, func(name string) string {
		return string(plainJSON(map[string]any{"command": process.Command, "cwd": process.Dir, "env": process.Env}[name]))
	}))
	h = newTestHub(t, func(c *config.Config) { *c = settings })
	close(ready)
	h.await(t, "joined gemini")
	connect := func(t *testing.T, asks *clientDialect) *pair {
		d := &pair{testHub: h, asks: asks, answers: editorProtocolAgents(), agent: "gemini", requester: asks.connect(t, h, "asker")}
		t.Cleanup(d.leave)
		return d
	}

	for _, asks := range []*clientDialect{piOverWebSocket(), covenByTools(), acpOverWebSocket(), overA2A(true), overMCP()} {
		t.Run(asks.name+" gets the text", func(t *testing.T) {
			d := connect(t, asks)
			key, x := d.startHalf(t, d.requester, query{}) // which waits for it, where answers are streamed
			d.finish(t, key)
			wantResult(t, x.wait(t), d.wantAnswer(firstHalf+secondHalf))
		})
	}

	made := filepath.Join(process.Dir, "made.txt")
	for _, c := range []struct {
		asks    *clientDialect
		by      string
		approve func(*testing.T, *pair, core.Opened, task.PendingApproval) error
	}{
		{overA2A(true), "pi", approveOverPi},
		{overMCP(), "REST", func(t *testing.T, d *pair, _ core.Opened, held task.PendingApproval) error {
			return d.decideAsOperator(held)(t.Context(), true)
		}},
	} {
		t.Run("asked over "+c.asks.name+", approved over "+c.by, func(t *testing.T) {
			d := connect(t, c.asks)
			key := d.key()
			q := d.query("please " + key + " write a file")
			q.thread = "talk"
			x := d.begin(q)
			opened := d.await(t, key+" opened").(core.Event).Body.(core.Opened)
			asked := d.await(t, key+" approval_requested").(core.Event).Body.(core.ApprovalRequested)
			if _, err := os.Stat(made); err == nil {
				t.Error("got the file before the approval, want it to wait")
			}
			if err := c.approve(t, d, opened, task.PendingApproval{Task: opened.Task, ID: asked.ID}); err != nil {
				t.Fatal(err)
			}
			wantResult(t, x.wait(t), d.wantAnswer(firstHalf+secondHalf))
			got, err := os.ReadFile(made)
			if err == nil {
				err = os.Remove(made)
			}
			if err != nil || string(got) != "made by the model\n" {
				t.Errorf("got the file %q and %v, want it written", got, err)
			}
		})
	}
}

// approveOverPi joins the thread of a request as a pi client, which is asked too, and approves.
func approveOverPi(t *testing.T, d *pair, opened core.Opened, _ task.PendingApproval) error {
	c := piOverWebSocket().connect(t, d.testHub, "").(*piClient)
	t.Cleanup(c.leave)
	run := c.listen("s", true)
	err := c.must(t.Context(), map[string]any{"type": "create_session", "sessionId": "s", "thread": opened.Request.Thread})
	if err == nil {
		err = c.must(t.Context(), map[string]any{"type": "switch_session", "sessionId": "s"})
	}
	if err != nil {
		return err
	}
	run.waitReport(t, "approval")
	return run.decide(t.Context(), true)
}
