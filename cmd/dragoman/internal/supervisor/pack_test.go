package supervisor_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// server is an MCP server in shell. Its tools are echo, big (a line of 11 MB) and die.
const server = `
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
  *server/discover*) answer '{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
  *tools/list*) answer '{"tools":[{"name":"echo"},{"name":"big"},{"name":"die"}]}' ;;
  *'"name":"big"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 11000000 /dev/zero | tr '\0' x; printf '"}]}}\n' ;;
  *'"name":"die"'*) echo "I cannot go on" >&2; exit 3 ;;
  *tools/call*) answer '{"content":[{"type":"text","text":"hello"}]}' ;;
  esac
done`

func packOf(name string, command ...string) config.Pack {
	if command == nil {
		command = []string{"sh", "-c", server}
	}
	return config.Pack{Name: name, Process: config.Process{Command: command}}
}

// pack returns the state of a pack of the settings.
func (s *supervising) pack(name string) supervisor.State {
	s.Helper()
	for _, p := range s.sup.Packs() {
		if p.Name == name {
			return p
		}
	}
	s.Fatalf("got no pack %s, want one", name)
	return supervisor.State{}
}

// untilPack waits for a state of a pack.
func (s *supervising) untilPack(name string, state core.ChildState) core.Child {
	s.Helper()
	for end := time.Now().Add(watchdog); time.Now().Before(end); {
		if p := s.pack(name); p.State == state {
			return p.Child
		}
		<-time.After(5 * time.Millisecond)
	}
	s.Fatalf("pack %s is %+v, want it %s\n%s", name, s.pack(name), state, s.log)
	return core.Child{}
}

func (s *supervising) call(name string) *tool.Result {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), watchdog)
	defer cancel()
	r, err := s.user.Call(ctx, name, json.RawMessage("{}"))
	if err != nil {
		s.Fatalf("calling %s: %v", name, err)
	}
	return r
}

func (s *supervising) wantCall(name, want string) {
	s.Helper()
	r := s.call(name)
	got := string(r.Output)
	if r.Fault != nil {
		got = r.Fault.Error()
	}
	if !strings.Contains(got, want) {
		s.Errorf("%s: got %.300s, want %s", name, got, want)
	}
}

func TestThePacksOfTheSettingsAreRunAndStartedAgain(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")})
	s.sup.Apply(nil, config.Packs{packOf("sh")})
	first := s.untilPack("sh", core.ChildReady)
	s.wantCall("sh.echo", `{"text":"hello"}`)
	s.wantCall("sh.big", "too_large")
	s.wantCall("sh.echo", `{"text":"hello"}`)
	s.wantCall("sh.die", "unreachable")
	for r := s.call("sh.echo"); r.Fault != nil; r = s.call("sh.echo") {
		if r.Fault.Code != core.CodeUnreachable || !strings.Contains(r.Fault.Message, "sh") {
			t.Fatalf("got %v, want it unreachable until it is back", r.Fault)
		}
		<-time.After(10 * time.Millisecond)
	}
	again := s.untilPack("sh", core.ChildReady)
	if again.PID == first.PID || again.Restarts != 1 || !strings.Contains(again.LastError, "exit status 3: I cannot go on") {
		t.Errorf("got %+v after %+v, want another process, and why the first ended", again, first)
	}
}

func TestAPackThatCannotBeStartedHasFailedUntilItsSettingsChange(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")})
	s.sup.Apply(nil, config.Packs{packOf("a", "no-such-program"), packOf("b")})
	if got := s.untilPack("a", core.ChildFailed); !strings.Contains(got.LastError, "no-such-program") {
		t.Errorf("got %+v, want the program named", got)
	}
	b := s.untilPack("b", core.ChildReady)
	s.wantCall("b.echo", "hello")
	s.wantCall("a.echo", "pack a is down") // it never had tools
	s.sup.Apply(nil, config.Packs{packOf("a"), packOf("b")})
	a := s.untilPack("a", core.ChildReady)
	s.wantCall("a.echo", "hello")
	if now := s.pack("b"); now.PID != b.PID {
		t.Errorf("got %+v, want pack b untouched: %+v", now, b)
	}
	s.sup.Apply(nil, config.Packs{packOf("b")})
	s.wantCall("a.echo", "unsupported")
	if alive(a.PID) {
		t.Error("got the process of a removed pack alive, want it ended")
	}
	s.wantCall("b.echo", "hello")
}

func TestAPackWhoseNameIsTakenSaysSo(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")})
	if err := s.user.Provide("a", []tool.Definition{{Name: "other"}}); err != nil {
		t.Fatal(err)
	}
	s.sup.Apply(nil, config.Packs{packOf("a")})
	if got := s.untilPack("a", core.ChildRestarting); !strings.Contains(got.LastError, "pack a already registered") {
		t.Errorf("got %+v, want the reason", got)
	}
}

// strictServer is an MCP server that ends when its first message is not initialize, as servers of rmcp
// do. It writes the methods that it gets into the file log, behind a line for each process.
const strictServer = `
echo start >> log
first=yes
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  method=$(printf %s "$line" | sed 's/.*"method":"\([a-z\/]*\)".*/\1/')
  echo "$method" >> log
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  [ "$first" = yes ] && [ "$method" != initialize ] && { echo "ExpectedInitializeRequest" >&2; exit 1; }
  first=no
  case "$method" in
  initialize) answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}' ;;
  tools/list) answer '{"tools":[{"name":"echo"},{"name":"die"}]}' ;;
  tools/call) case "$line" in *'"name":"die"'*) exit 3 ;; *) answer '{"content":[{"type":"text","text":"hello"}]}' ;; esac ;;
  esac
done`

func TestAServerThatTakesInitializeAloneAsItsFirstMessageGetsIt(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")})
	dir := t.TempDir()
	strict := packOf("strict", "sh", "-c", strictServer)
	strict.Dir = dir
	s.sup.Apply(nil, config.Packs{strict})
	s.untilPack("strict", core.ChildReady)
	s.wantCall("strict.echo", "hello")
	s.wantCall("strict.die", "unreachable")
	for r := s.call("strict.echo"); r.Fault != nil; r = s.call("strict.echo") {
		<-time.After(10 * time.Millisecond)
	}
	got, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	const started = "start\ninitialize\nnotifications/initialized\ntools/list\n"
	want := "start\nserver/discover\n" + started + "tools/call\ntools/call\n" + started + "tools/call\n"
	if string(got) != want {
		t.Errorf("got the messages\n%s\nwant them of one process that was probed and of two that were not:\n%s", got, want)
	}
}

func TestAProgramThatEndsAtOnceIsStartedTwiceAtMostForEachTry(t *testing.T) {
	s := supervise(t, []string{"PATH=" + os.Getenv("PATH")})
	dir := t.TempDir()
	broken := packOf("broken", "sh", "-c", "echo start >> log; echo 'no key' >&2; exit 1")
	broken.Dir = dir
	s.sup.Apply(nil, config.Packs{broken})
	got := s.untilPack("broken", core.ChildRestarting)
	if !strings.Contains(got.LastError, "no key") {
		t.Errorf("got %+v, want what it said", got)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "log"))
	if n := strings.Count(string(log), "start"); n > 2*(got.Restarts+1) {
		t.Errorf("got %d processes for %d tries, want two for each at most", n, got.Restarts+1)
	}
}
