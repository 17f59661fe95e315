//go:build unix

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
)

// What halves an answer at the FIFO that DOOR names: for each request, and as a process that speaks native.
const (
	halves       = `printf "the first half"; read x <"$DOOR"; printf " and the second"`
	nativeHalves = `echo '{"call":{"id":"1","act":"join","command":{"card":{"id":"x"}}}}'
while read -r line; do
	case $line in *'"kind":"assigned"'*)
		task=${line#*'"task":"'}; task=${task%%'"'*}
		echo '{"event": {"task": "'$task'", "kind": "text", "body": {"text": "the first half"}}}'
		read x <"$DOOR"
		echo '{"event": {"task": "'$task'", "kind": "text", "body": {"text": " and the second"}}}'
		echo '{"event": {"task": "'$task'", "kind": "done", "body": {}}}'
	esac
done`
)

// leaver is dragoman agent as a process.
type leaver struct {
	*exec.Cmd
	log  *bufio.Reader
	door *os.File // lets an answer go on
}

// startLeaver starts an agent that runs a script of the shell, and returns once it has joined.
func (h *testHub) startLeaver(t *testing.T, id, script string, flags ...string) *leaver {
	t.Helper()
	path := filepath.Join(t.TempDir(), "door")
	door := openFIFO(t, path)
	flags = append(flags, "--name", id, "--concurrent", "2", "--capability", "leaving", "--hub", h.url(), "--", "sh", "-c", script)
	l := &leaver{Cmd: program(t, append([]string{"agent"}, flags...)...), door: door}
	l.Env = append(l.Env, "DOOR="+path)
	stderr, err := l.StderrPipe()
	if err == nil {
		err = l.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Process.Kill() // it has ended if all went well
		_ = l.Wait()
	})
	l.log = bufio.NewReader(stderr)
	h.await(t, "joined "+id)
	l.logs(t, "joined: ask it")
	return l
}

// openFIFO makes a FIFO, which is open until the test ends.
func openFIFO(t *testing.T, path string) *os.File {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// logs waits until the agent has logged a text.
func (l *leaver) logs(t *testing.T, text string) {
	t.Helper()
	for {
		line, err := l.log.ReadString('\n')
		if strings.Contains(line, text) {
			return
		}
		if err != nil {
			t.Fatalf("the agent ended without saying %q", text)
		}
	}
}

// signals sends a signal to the agent.
func (l *leaver) signals(t *testing.T, sig os.Signal) {
	t.Helper()
	if err := l.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// leaves waits for the normal end of the agent.
func (l *leaver) leaves(t *testing.T) {
	t.Helper()
	l.logs(t, `"message":"left"`)
	if err := l.Wait(); err != nil {
		t.Errorf("the agent: got %v, want a normal end", err)
	}
}

func TestTheFirstInterruptOfAnAgentLetsItFinish(t *testing.T) {
	for name, flags := range map[string][]string{
		coven.Name: {"--dialect", coven.Name}, parallax.Dialect: {"--dialect", parallax.Dialect}, acp.Dialect: {"--dialect", acp.Dialect},
		native.Dialect: {"--dialect", native.Dialect}, "speaks native": {"--speaks", "native", "--env", "DOOR"},
	} {
		for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
			t.Run(name+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				h, script := newTestHub(t, nil), halves
				if name == "speaks native" {
					script = nativeHalves
				}
				l := h.startLeaver(t, "leaver", script, flags...)
				asker := connectREST(t, h)
				defer asker.leave()
				x := asker.open(query{to: "leaver", content: "go"}, true)
				x.waitText(t, "the first half")
				l.signals(t, sig)
				l.logs(t, "finishing 1 task: interrupt again to leave")

				if got := asker.open(query{to: "leaver", content: "more"}, true).wait(t); got.Code != string(core.CodeUnreachable) || got.Retry != "true" {
					t.Errorf("asked while it leaves: got %+v, want it refused as unreachable, retryable", got)
				}
				other := h.startLeaver(t, "other", "echo here", "--dialect", coven.Name)
				if got := asker.open(query{to: "capability:leaving", content: "more"}, true).wait(t); got.Text != "here\n" {
					t.Errorf("asked by a capability: got %+v, want the answer of the other agent", got)
				}
				if _, err := l.door.WriteString("go on\n"); err != nil {
					t.Fatal(err)
				}
				if got := x.wait(t); got.End != "done" || got.Text != "the first half and the second" {
					t.Errorf("got %+v, want the whole answer", got)
				}
				l.leaves(t)
				other.signals(t, sig)
				other.leaves(t)
			})
		}
	}
}

func TestAnAgentLeavesWhenItsTasksTakeTooLong(t *testing.T) {
	h := newTestHub(t, nil)
	l := h.startLeaver(t, "leaver", halves, "--stop-timeout", "1ms")
	asker := connectREST(t, h)
	defer asker.leave()
	x := asker.open(query{to: "leaver", content: "go"}, true)
	x.waitText(t, "the first half")
	l.signals(t, syscall.SIGTERM)
	l.logs(t, "finishing 1 task: interrupt again to leave")
	l.logs(t, "not all is done and sent in time: leaving")
	l.leaves(t)
	if got := x.wait(t); got.Code != string(core.CodeUnreachable) {
		t.Errorf("got %+v, want the task to fail as unreachable", got)
	}
}

func TestTheSecondInterruptOfAnAgentKillsItsCommand(t *testing.T) {
	h := newTestHub(t, nil)
	late := filepath.Join(t.TempDir(), "late")
	l := h.startLeaver(t, "leaver", `trap 'sleep 1.5; echo >"`+late+`"' TERM; `+halves)
	asker := connectREST(t, h)
	defer asker.leave()
	x := asker.open(query{to: "leaver", content: "go"}, true)
	x.waitText(t, "the first half")
	l.signals(t, os.Interrupt)
	l.logs(t, "finishing 1 task: interrupt again to leave")
	l.signals(t, os.Interrupt)
	l.leaves(t)
	if _, err := os.Stat(late); err == nil {
		t.Error("got a command that had time to end by itself, want it killed")
	}
	if got := x.wait(t); got.Code != string(core.CodeUnreachable) {
		t.Errorf("got %+v, want the task to fail as unreachable", got)
	}
}

func TestTheSecondInterruptOfAHubKillsItsChildren(t *testing.T) {
	for name, patience := range map[string]string{"within stop_timeout": "1m", "after it": "1ms"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "deaf.sh")
			started := openFIFO(t, filepath.Join(dir, "started"))
			text := `trap 'echo >"` + dir + `/late"' TERM
echo >"` + started.Name() + `"
while read -r line; do :; done
echo 'the hub has gone' >&2
while :; do sleep 0.01; done`
			settings := filepath.Join(dir, "dragoman.yaml")
			for path, content := range map[string]string{script: text, settings: "stop_timeout: " + patience + "\nagents: [{name: deaf, dialect: native, command: [sh, " + script + "]}]\n"} {
				if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := startHub(t, "--config", settings)
			if _, err := started.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			h.waitLog(t, "stderr") // its stdin was closed: it gets a second to end
			if err := h.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			h.waitLog(t, "the hub has stopped")
			if _, err := os.Stat(filepath.Join(dir, "late")); err == nil {
				t.Error("got a child that had time to end by itself, want it killed")
			}
		})
	}
}

// A process that speaks native is started for a hub that takes it.
func TestACommandWaitsForADrainedHub(t *testing.T) {
	h := newTestHub(t, nil)
	starts := filepath.Join(t.TempDir(), "starts")
	l := h.startLeaver(t, "leaver", `echo start >>"`+starts+`"; `+nativeHalves, "--speaks", "native")
	if err := h.service.Hub().Drain(core.Principal{Operator: true}); err != nil {
		t.Fatal(err)
	}
	l.logs(t, "waiting for a hub")
	l.signals(t, os.Interrupt)
	l.leaves(t)
	if got, err := os.ReadFile(starts); err != nil || string(got) != "start\n" {
		t.Errorf("got %q and %v, want one start", got, err)
	}
}
