package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// watchdog bounds the waits of a test. Only a failing test reaches it.
const watchdog = 2 * time.Minute

// supervising is a hub with a Supervisor.
type supervising struct {
	*testing.T
	hub  *hub.Hub
	sup  *supervisor.Supervisor
	user *hub.Session
	log  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// supervise starts the agents on a hub; env is the environment of the hub.
func supervise(t *testing.T, env []string, agents ...config.Agent) *supervising {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &supervising{T: t, log: &lockedBuffer{}}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	s.hub = coretest.NewHub(t, hub.Options{Log: log, Refused: func(id core.AgentID) *core.Child { return s.sup.Refused(id) }})
	s.sup = supervisor.New(supervisor.Options{
		Hub: s.hub, Log: log, Launcher: &supervisor.Launcher{Log: log, Guard: supervisor.NewGuard(self, guardArgument), Environ: env},
		Records: func(string) core.RecordLog { return nil },
		Tools:   func(*hub.Session) (string, string, func()) { return "", "", func() {} },
	})
	t.Cleanup(s.sup.Close)
	s.user = s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
	t.Cleanup(func() { s.user.Close(nil) })
	s.sup.Apply(agents, nil)
	return s
}

// ask asks an agent and returns how it ended.
func (s *supervising) ask(to, content string) core.Answer {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), watchdog)
	defer cancel()
	t, err := s.user.Open(core.Request{To: core.ToAgent(core.AgentID(to)), Content: content}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		return core.Answer{Fault: core.AsFault(err)}
	}
	s.user.AwaitEnd(t)
	for {
		b, err := s.user.Next(ctx)
		if err != nil {
			s.Fatalf("waiting for %s: %v", to, err)
		}
		if b.Task == t {
			return t.Answer()
		}
	}
}

// until waits for a state of an agent.
func (s *supervising) until(id core.AgentID, state core.ChildState) core.Child {
	s.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		if a, ok := s.hub.Agent(core.Principal{Operator: true}, id); ok && a.Child != nil && a.Child.State == state {
			return *a.Child
		}
		<-time.After(5 * time.Millisecond)
	}
	a, _ := s.hub.Agent(core.Principal{Operator: true}, id)
	s.Fatalf("agent %s is %+v, want it %s\n%s", id, a.Child, state, s.log)
	return core.Child{}
}

func shell(name, script string, env ...string) config.Agent {
	return config.Agent{Name: name, Dialect: config.SpeaksText, Process: config.Process{Command: []string{"sh", "-c", script}, Env: env}}
}

func TestATextAgentAnswersWithTheOutputOfItsCommand(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")}, config.Agent{Name: "shout", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"tr", "a-z", "A-Z"}}})
	if got := s.ask("shout", "hello"); got.Text != "HELLO" || got.End != core.KindDone {
		t.Errorf("got %q (%v), want HELLO", got.Text, got.Fault)
	}
}

func TestATextAgentRunsItsCommandForANotice(t *testing.T) {
	heard := filepath.Join(t.TempDir(), "heard")
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")}, shell("bell", "cat >"+heard+".new; echo thanks; mv "+heard+".new "+heard))
	s.until("bell", core.ChildReady)
	notice := core.Request{Intent: core.IntentNotify, To: core.ToAgent("bell"), Notice: &core.Notice{Topic: "door.open", Data: json.RawMessage(`{"who":"me"}`)}}
	if _, err := s.user.Open(notice, hub.OpenOptions{Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	var got []byte
	for end := time.Now().Add(watchdog); got == nil && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		got, _ = os.ReadFile(heard)
	}
	if want := "door.open {\"who\":\"me\"}\n"; string(got) != want {
		t.Errorf("the command got %q, want %q\n%s", got, want, s.log)
	}
}

func TestAChildGetsOnlyTheVariablesThatItMayHave(t *testing.T) {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/here", "SECRET=1", "KEY=2", "CHILD_OF_DRAGOMAN=other"}
	s := supervise(t, env, shell("env", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= -e ^OLDPWD= | sort", "KEY", "MODE=test"))
	got := s.ask("env", "go").Text
	if strings.Contains(got, "SECRET") || !strings.Contains(got, "KEY=2\n") || !strings.Contains(got, "MODE=test\n") || !strings.Contains(got, "HOME=/here\n") {
		t.Errorf("the variables are\n%s\nwant KEY, MODE, HOME and PATH, not SECRET", got)
	}
}

func TestWhatAChildWritesOnStderrIsLogged(t *testing.T) {
	s := supervise(t, nil, shell("noisy", "echo careful >&2; printf ok"))
	if got := s.ask("noisy", "go"); got.Text != "ok" {
		t.Fatalf("got %q (%v), want ok", got.Text, got.Fault)
	}
	if !strings.Contains(s.log.String(), "careful") {
		t.Errorf("the log is\n%s\nwant it to contain what was on stderr", s.log)
	}
}

func TestAMissingProgramIsAFailedAgent(t *testing.T) {
	s := supervise(t, nil, config.Agent{Name: "a", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"no-such-program"}}})
	if got := s.until("a", core.ChildFailed); !strings.Contains(got.LastError, "no-such-program") {
		t.Errorf("the last error is %q, want it to name the program", got.LastError)
	}
	if f := s.ask("a", "hello").Fault; f == nil || f.Code != core.CodeUnreachable || !strings.Contains(f.Message, "no-such-program") {
		t.Errorf("got %v, want it unreachable with the reason", f)
	}
	path := filepath.Join(t.TempDir(), "program")
	s.sup.Apply(config.Agents{{Name: "a", Dialect: config.SpeaksText, Process: config.Process{Command: []string{path}}}}, nil)
	s.until("a", core.ChildFailed)
	if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf here"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.sup.Restart("a"); err != nil {
		t.Fatal(err)
	}
	s.until("a", core.ChildReady)
	if got := s.ask("a", "hello"); got.Text != "here" {
		t.Errorf("after a restart: got %q (%v), want here", got.Text, got.Fault)
	}
}

func TestApplyTouchesOnlyWhatHasChanged(t *testing.T) {
	s := supervise(t, nil, shell("stays", "printf 1"), shell("changes", "printf 1"), shell("leaves", "printf 1"))
	since := func(id core.AgentID) time.Time {
		s.until(id, core.ChildReady)
		a, _ := s.hub.Agent(core.Principal{Operator: true}, id)
		return a.Since
	}
	before := since("stays")
	since("changes")
	since("leaves")
	s.sup.Apply(config.Agents{shell("stays", "printf 1"), shell("changes", "printf 2"), shell("comes", "printf 3")}, nil)
	if got := since("stays"); !got.Equal(before) {
		t.Error("an agent that did not change joined again")
	}
	if got := s.ask("changes", "go").Text; got != "2" {
		t.Errorf("the changed agent answers %q, want 2", got)
	}
	if got := s.ask("comes", "go").Text; got != "3" {
		t.Errorf("the new agent answers %q, want 3", got)
	}
	if _, here := s.hub.Agent(core.Principal{Operator: true}, "leaves"); here {
		t.Error("the agent that was removed is still here")
	}
	for _, want := range []string{"it was taken out of the settings", "its settings have changed"} {
		if log := s.log.String(); !strings.Contains(log, want) || strings.Contains(log, "the hub is stopping") {
			t.Errorf("the log is\n%s\nwant it to say %q, and not that the hub is stopping", log, want)
		}
	}
	if err := s.sup.Restart("leaves"); err == nil {
		t.Error("a restart of an agent that was removed: got no error")
	}
}

// Node.js writes its version below the trace of an error: that says nothing.
func TestTheLastErrorOfAScriptIsNotTheVersionOfNode(t *testing.T) {
	script := `printf '  throw err;\n  ^\n\nError: Cannot find module x\n    at load (loader:1)\n  code: 1\n}\n\nNode.js v20.20.2\n' >&2; exit 1`
	a := config.Agent{Name: "a", Dialect: config.SpeaksEditor, Process: config.Process{Command: []string{"sh", "-c", script}}}
	got := supervise(t, []string{"PATH=" + os.Getenv("PATH")}, a).until("a", core.ChildRestarting).LastError
	if want := "the process ended with exit status 1: Error: Cannot find module x"; got != want {
		t.Errorf("the last error is %q, want %q", got, want)
	}
}

// What a process that was killed wrote last is not why it ended.
func TestTheLastErrorOfAKilledProcessIsTheSignal(t *testing.T) {
	a := config.Agent{Name: "a", Dialect: config.SpeaksEditor, Process: config.Process{Command: []string{"sh", "-c", "echo all is well >&2; kill -9 $$"}}}
	got := supervise(t, []string{"PATH=" + os.Getenv("PATH")}, a).until("a", core.ChildRestarting).LastError
	if want := "the process ended with signal: killed; the last line on stderr is: all is well"; got != want {
		t.Errorf("the last error is %q, want %q", got, want)
	}
}

func TestACancelEndsTheProcessOfATextAgent(t *testing.T) {
	dir := t.TempDir()
	s := supervise(t, nil, shell("sleeper", "echo $$ > "+dir+"/pid; printf started; sleep 1000"))
	asked, err := s.user.Open(core.Request{To: core.ToAgent("sleeper"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		b, err := s.user.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if last := b.Events[len(b.Events)-1].Body.Kind(); last == core.KindText {
			if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
				t.Fatal(err)
			}
		} else if last.Ends() {
			break
		}
	}
	if got := asked.Answer(); got.End != core.KindCancelled || got.Text != "started" {
		t.Errorf("ended as %s with %q, want cancelled with what was said", got.End, got.Text)
	}
	wantsGone(t, dir+"/pid")
}

// wantsGone waits until the process whose id a file has is gone.
func wantsGone(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		if !alive(pid) {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Errorf("process %d still runs", pid)
}

func TestAProgramIsFoundWhereItsProcessWillRun(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "agent.sh"), []byte("#!/bin/sh\nprintf here"), 0o700); err != nil {
		t.Fatal(err)
	}
	relative := config.Agent{Name: "relative", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"./agent.sh"}, Dir: dir}}
	inPath := config.Agent{Name: "path", Dialect: config.SpeaksText, Process: config.Process{Command: []string{"agent.sh"}, Env: []string{"PATH=" + dir + ":/bin:/usr/bin"}}}
	s := supervise(t, nil, relative, inPath)
	for _, id := range []string{"relative", "path"} {
		if got := s.ask(id, "go"); got.Text != "here" {
			t.Errorf("%s: got %q (%v), want here", id, got.Text, got.Fault)
		}
	}
}

func TestAnAgentWhoseIDIsTakenIsShownBesideTheOneThatHasIt(t *testing.T) {
	s := supervise(t, nil)
	other := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other"}, Dialect: "test"})
	if err := other.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	s.sup.Apply(config.Agents{shell("a", "printf 1")}, nil)
	if got := s.sup.States(); len(got) != 1 || got[0].State != core.ChildFailed || !strings.Contains(got[0].LastError, "already registered") {
		t.Errorf("got %+v, want it failed because the id is taken", got)
	}
	a, _ := s.hub.Agent(core.Principal{Operator: true}, "a")
	if a.Refused == nil || a.Refused.State != core.ChildFailed || !strings.HasPrefix(a.Refused.LastError, "agent a already registered: choose another id, such as a-1") || a.Refused.Retry() != 5*time.Second || a.Child != nil {
		t.Errorf("got %+v in the list of agents, want the one that has the id with the refused one beside it", a)
	}
	if got := s.hub.Agents(core.Principal{ID: "someone"}); len(got) != 1 || got[0].Refused == nil || got[0].Refused.LastError != "" {
		t.Errorf("got %+v for a stranger, want the state without the reason", got)
	}
	other.Close(nil)
	s.until("a", core.ChildReady)
	if a, _ = s.hub.Agent(core.Principal{Operator: true}, "a"); a.Refused != nil {
		t.Errorf("got %+v once the id is free, want nothing refused", a.Refused)
	}
	s.sup.Apply(nil, nil)
}

func TestAMissingDirectoryIsNamed(t *testing.T) {
	a := shell("a", "true")
	a.Dir = "/no/such/directory"
	if got := supervise(t, nil, a).until("a", core.ChildFailed).LastError; !strings.Contains(got, "cwd /no/such/directory") {
		t.Errorf("got %q, want the directory named", got)
	}
}

func TestWhatANativeChildPrintsBesideItsFramesIsNamedAndSkipped(t *testing.T) {
	s := supervise(t, nil, nativeShell(`echo "Loading the model ..."
printf '\377\n'
echo '{"call":{"id":"0","act":"join","command":{"card":{"capabilties":["talk"]}}}}'
echo '{"call":{"id":"1","act":"join","command":{"card":{"capabilities":["talk"]}}}}'
cat >/dev/null`))
	s.until("kid", core.ChildReady)
	log := s.log.String()
	for _, want := range []string{
		`line="\"Loading the model ...\""`, `line="\"\\xff\""`,
		`did you mean \"capabilities\"?`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log is\n%s\nwant %s in it", log, want)
		}
	}
	if got := s.hub.Counters()["native.garbage"]; got != 3 {
		t.Errorf("got %d frames counted as garbage, want 3", got)
	}
	if a, _ := s.hub.Agent(core.Principal{Operator: true}, "kid"); len(a.Capabilities) != 1 || a.Capabilities[0] != "talk" {
		t.Errorf("got the capabilities %v, want those of the second join", a.Capabilities)
	}
}

func TestSettingsThatComeAfterTheEndStartNothing(t *testing.T) {
	s := supervise(t, nil)
	s.sup.Close()
	s.sup.Apply(config.Agents{shell("late", "printf 1")}, nil) // must return
	if _, here := s.hub.Agent(core.Principal{Operator: true}, "late"); here {
		t.Error("an agent was started after the end")
	}
	s.sup.Close()
}
