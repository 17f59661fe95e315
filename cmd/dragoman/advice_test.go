package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
)

// typed runs a command line with nothing on its stdin.
func typed(t *testing.T, args ...string) (code int, out, complaint string) {
	t.Helper()
	var stdout, stderr earshot
	code = run(t.Context(), args, streams{io.NopCloser(strings.NewReader("")), &stdout, &stderr})
	return code, stdout.String(), stderr.String()
}

// closedDoor is an address at which nobody listens.
func closedDoor(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Whoever writes a wrong command line reads one line that says what to write.
func TestAWrongCommandLineIsAnsweredWithWhatToWrite(t *testing.T) {
	s := newStage(t, nil)
	s.cast(t, parallax.Dialect, "actor", 1)
	hub, pi, grpc, nobody := "http://"+s.service.bound.HTTP, "http://"+s.service.bound.Pi, s.service.bound.GRPC, closedDoor(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	shut := []string{"--grpc-addr", "", "--http-addr", "", "--pi-addr", ""}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"ask"}, exitUsage, "TO is missing: write 'dragoman ask TO [WORD...]"},
		{[]string{"delegate"}, exitUsage, "TO is missing: write 'dragoman delegate TO [WORD...]"},
		{[]string{"agent", "--dialect", "acp", "--name", "a"}, exitUsage, "-- COMMAND [ARG...]'; see 'dragoman agent --help'"},
		{[]string{"tail", ""}, exitUsage, "TASK is empty: write 'dragoman tail [TASK]"},
		{[]string{"agents", ""}, exitUsage, "ID is empty: write 'dragoman agents [ID]"},
		{[]string{"ask", "", "hello"}, exitUsage, "TO is empty: write 'dragoman ask TO [WORD...]"},
		{[]string{"deny", "task", ""}, exitUsage, "CALL is empty: write 'dragoman deny TASK [CALL]"},
		{[]string{"ask", "actor", "", "--hub", hub}, exitUsage, "the content is empty: say what is wanted"},
		{[]string{"serve", "now", "please"}, exitUsage, `"now please" is too much: write 'dragoman serve [flags]'`},
		{[]string{"agents", "a", "b"}, exitUsage, `"b" is too much: write 'dragoman agents [ID]`},
		{[]string{"tail", "a", "b"}, exitUsage, `"b" is too much: write 'dragoman tail [TASK]`},
		{[]string{"tail", "--color", "blue"}, exitUsage, `--color "blue": use auto, always or never`},
		{[]string{"ask", "a", "b", "--timeout", "-1s"}, exitUsage, "--timeout -1s: use some time, such as 20s"},
		{[]string{"ask", "a", "b", "--timeout", "0"}, exitUsage, "--timeout 0s: use some time"},
		{[]string{"ask", "a", "b", "--file", "/none"}, exitUsage, "--file /none: no such file or directory; name a file that you may read"},
		{[]string{"ask", "a", "b", "--data", "x"}, exitUsage, "--data is not JSON: write it such as"},
		{[]string{"ask", "somebody", "b", "--hub", hub}, exitFailed, `no agent "somebody" is here; 'dragoman agents -o wide' lists who is here`},
		{[]string{"ask", "actor", "b", "--hub", hub, "--file", file}, exitFailed, "send less, attachments included, or say where it is (a path, a link); the setting rest.body_bytes moves the limit"},
		{[]string{"agent", "--dialect", "acp", "--name", "a", "--concurrent", "0", "--", "cat"}, exitUsage, "--concurrent 0: want at least 1"},
		{[]string{"agent", "--dialect", "acp", "--name", "a", "--", "no-such-command-here"}, exitUsage, "the command cannot be run"},
		{[]string{"ask", "a", "b", "--timeout", "long"}, exitUsage, `--timeout "long": want a time such as 20s, 5m or 7d; see 'dragoman ask --help'`},
		{[]string{"ask", "a", "b", "--max-tokens", "few"}, exitUsage, `--max-tokens "few": want a whole number; see`},
		{[]string{"ask", "a", "b", "--file", ""}, exitUsage, "--file is empty: give the file, or leave it out"},
		{[]string{"ask", "a", "b", "--data", ""}, exitUsage, "--data is empty: give the JSON, or leave it out"},
		{[]string{"delegate", "a", "b", "--context", ""}, exitUsage, "--context is empty: give the JSON, or leave it out"},
		{[]string{"delegate", "a", "b", "--thread", ""}, exitUsage, "--thread is empty: give the id, or leave it out"},
		{[]string{"serve", "--stdio=maybe"}, exitUsage, `--stdio "maybe": want true or false; see`},
		{[]string{"serve", "--http_addr", ":1"}, exitUsage, "unknown flag --http_addr: did you mean --http-addr?; see"},
		{[]string{"serve", "--purple"}, exitUsage, "unknown flag --purple; see 'dragoman serve --help'"},
		{[]string{"serve", "-c", "x"}, exitUsage, "unknown flag -c; see"},
		{[]string{"agents", "--hub"}, exitUsage, "--hub wants a value; see"},
		{[]string{"help", "sreve"}, exitUsage, `unknown command "sreve": did you mean 'dragoman serve'?`},
		{[]string{"help", "frobnicate"}, exitUsage, `unknown command "frobnicate": see 'dragoman --help'`},
		{[]string{"help", "config", "frobnicate"}, exitUsage, `unknown command "frobnicate": see 'dragoman config --help'`},
		{[]string{"config", "set-agnt", "x"}, exitUsage, `unknown command "set-agnt": did you mean 'dragoman config set-agent'?`},
		{[]string{"config", "frobnicate"}, exitUsage, `unknown command "frobnicate": see 'dragoman config --help'`},
		{[]string{"frobnicate", "now"}, exitUsage, `unknown command "frobnicate": see 'dragoman --help'`},
		{[]string{"ask", "a", "b", "--timeout", "7 days"}, exitUsage, `--timeout "7 days": want a time such as 20s, 5m or 7d`},
		{[]string{"stdio", "--snapshots", "some"}, exitUsage, `--snapshots "some": use all or none, with --dialect pi`},
		{[]string{"stdio", "--snapshots", "none", "--dialect", "acp"}, exitUsage, `--snapshots "none": use all or none, with --dialect pi`},
		{[]string{"agent", "sed", "-e", "s/a/b/"}, exitUsage, "--dialect is missing: write coven, parallax or acp, before the command"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--hub", pi, "--", "cat"}, exitFailed, "is no hub, or another door of it: name the address that the hub says when it is ready with --hub (426 Upgrade Required)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", "", "--", "cat"}, exitUsage, "--grpc-addr is empty: give the address, or leave it out"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--grpc-addr", grpc, "--", "cat"}, exitUsage, "--grpc-addr is not where --dialect acp joins: use --hub"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--domain", "A B", "--", "cat"}, exitUsage, `--domain "A B": write words with dots between, such as family.calendar`},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "actor", "--hub", hub, "sed", "-e", "p"}, exitFailed, "agent actor already registered: choose another id, such as actor-1, or wait"},
		{[]string{"agent", "--dialect", parallax.Dialect, "--name", "actor", "--hub", hub, "--", "cat"}, exitFailed, "choose another id, such as actor-1, or wait"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "actor", "--grpc-addr", grpc, "--", "cat"}, exitFailed, "the id actor-1 is free"},
		{[]string{"serve", "--http-addr", ":70000"}, exitUsage, `--http-addr :70000: "70000" is no port (0 to 65535); write it as host:port`},
		{[]string{"serve", "--http-addr", "300.1.1.1:80"}, exitUsage, `--http-addr 300.1.1.1:80: "300.1.1.1" is no IP address; write it`},
		{[]string{"serve", "--http-addr", "8080", "--pi-addr", ":3141"}, exitUsage, "; --pi-addr :3141 is open to the network and nobody has to authenticate: use 127.0.0.1"},
		{[]string{"serve", "--grpc-addr", grpc, "--http-addr", s.service.bound.HTTP, "--pi-addr", "127.0.0.1:0"}, exitFailed, "bind: address already in use; choose other addresses with --grpc-addr, --http-addr (port 0 picks a free one)"},
		{[]string{"serve", "--config", "/none.yaml"}, exitUsage, "--config /none.yaml: no such file or directory; name a YAML file"},
		{append([]string{"serve"}, shut...), exitUsage, "nobody could reach the hub: give it one of"},
		{append([]string{"check"}, shut...), exitUsage, "nobody could reach the hub: give it one of"},
		{append([]string{"serve", "--stdio", "--data-dir", file}, shut...), exitFailed, "--data-dir " + file},
		{append([]string{"serve", "--stdio", "--ready-file", "/none/x"}, shut...), exitFailed, "--ready-file /none/x"},

		{[]string{"agents", "--hub", "127.0.0.1:8080"}, exitUsage, `--hub "127.0.0.1:8080": write it as http://host:port`},
		{[]string{"agents", "--hub", "localhost"}, exitUsage, `--hub "localhost": write it as`},
		{[]string{"stdio", "--hub", "ftp://localhost"}, exitUsage, `--hub "ftp://localhost": write it as`},
		{[]string{"agents", "--hub", "http://" + nobody}, exitFailed, "start one with 'dragoman serve', or name another with --hub (dial tcp " + nobody + ": connect: connection refused)"},
		{[]string{"stdio", "--hub", "http://" + nobody}, exitFailed, "or name another with --hub (dial tcp " + nobody + ": connect: connection refused)"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--hub", "http://" + nobody, "--", "cat"}, exitFailed, "with --hub (dial tcp " + nobody + ": connect: connection refused)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", nobody, "--", "cat"}, exitFailed, "with --grpc-addr (dial tcp " + nobody + ": connect: connection refused)"},
		{[]string{"agents", "--hub", "http://" + grpc}, exitFailed, "is no hub, or another door of it: name the address that the hub says when it is ready with --hub"},
		{[]string{"stdio", "--hub", "http://" + grpc}, exitFailed, "is no hub, or another door of it"},
		{[]string{"agents", "--hub", pi}, exitFailed, "is no hub, or another door of it: name the address that the hub says when it is ready with --hub (426 Upgrade Required)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", s.service.bound.HTTP, "--", "cat"}, exitFailed, "is no hub, or another door of it"},
	} {
		code, out, complaint := typed(t, tt.args...)
		if code != tt.code || !strings.Contains(complaint, tt.want) {
			t.Errorf("dragoman %q: got %d and %q, want %d and %q", tt.args, code, complaint, tt.code, tt.want)
		}
		if last := strings.TrimSpace(complaint); strings.Count(last, "dragoman: ") != 1 || strings.Contains(last, "\n") || out != "" {
			t.Errorf("dragoman %q: got %q and %q, want one line on stderr and nothing on stdout", tt.args, complaint, out)
		}
	}
}

func TestWhereThereIsNothingToShowIsSaidSo(t *testing.T) {
	s := newStage(t, nil)
	for command, want := range map[string]string{"agents": "no agent is here", "usage": "no agent has told of any tokens"} {
		if code, out, said := typed(t, command, "--hub", "http://"+s.service.bound.HTTP); code != exitDone || out != "" || !strings.Contains(said, want) {
			t.Errorf("%s: got %d, %q and %q, want %q on stderr", command, code, out, said, want)
		}
	}
}

func TestNothingIsOwedToAPeerThatAskedNothing(t *testing.T) {
	s := newStage(t, nil)
	for _, dialect := range []string{"pi", "acp"} {
		if code, _, complaint := typed(t, "stdio", "--dialect", dialect, "--hub", "http://"+s.service.bound.HTTP); code != exitDone || complaint != "" {
			t.Errorf("%s: got %d and %q, want the end at once", dialect, code, complaint)
		}
	}
}

func TestALineThatIsAnsweredWithoutItsIDIsOwedNothingMore(t *testing.T) {
	s := newStage(t, nil)
	for _, line := range []string{
		`{"id":"a","type":"list_sessions","x":1,"x":2}`, `{"ID":"a","type":"list_sessions"}`, `{"id":"a"`, `{"id":"a","type":"response"}`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		var stdout, stderr earshot
		in := io.NopCloser(strings.NewReader(line + "\n"))
		code := run(ctx, []string{"stdio", "--hub", "http://" + s.service.bound.HTTP}, streams{in, &stdout, &stderr})
		if ctx.Err() != nil || code != exitDone || strings.Count(stdout.String(), `"success":false`) != 1 {
			t.Errorf("%s: got %d, %q and %q, want one failure and the end", line, code, stdout.String(), stderr.String())
		}
		cancel()
	}
}

func TestAnAgentThatNobodyTakesInGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := inTime(t.Context(), func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return errors.New("what came of that")
		}, func() {})
		if err == nil || !errors.Is(err, errSilent) || time.Since(began) != patience {
			t.Errorf("got %v after %v, want it given up after %v", err, time.Since(began), patience)
		}
		joined := false
		err = inTime(t.Context(), func(ctx context.Context, in func()) error {
			in()
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return lost
		}, func() { joined = true })
		if !joined || !errors.Is(err, lost) {
			t.Errorf("once it is in: got joined %v and %v, want it to stay until %v", joined, err, lost)
		}
	})
}

func TestWhoComesBackSaysWhyHeLeft(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{{nil, `reason="the hub ended it in good order"`}, {lost, `reason="peer gone: the connection was lost"`}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var log earshot
			_ = stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 0, func(_ context.Context, joined func()) error {
				joined()
				return tt.err
			})
			if !strings.Contains(log.String(), tt.want) {
				t.Errorf("got the log %q, want %s in it", log.String(), tt.want)
			}
		})
	}
}

func TestWhereTheHubHasNoDoorItTellsOfThoseThatItHas(t *testing.T) {
	s := newStage(t, nil)
	for _, path := range []string{"/", "/v2/tasks"} {
		status, answer := posts(t, s.service.bound.HTTP, path, "{}", nil)
		for _, want := range []string{`"code":"unsupported"`, "/v1", "/ws/agent", "/ws/acp", "/ws/pi", "/healthz"} {
			if status != http.StatusNotFound || !strings.Contains(answer, want) {
				t.Errorf("%s: got %d and %s, want %d and %s", path, status, answer, http.StatusNotFound, want)
			}
		}
	}
}

func TestAnIDIsShownAsAShellTakesIt(t *testing.T) {
	for id, want := range map[string]string{"shout": "shout", "family.calendar": "family.calendar", "größe": "größe", "a b": `"a b"`, `a"b`: `"a\"b"`} {
		if got := quoted(id); got != want {
			t.Errorf("got %s of %s, want %s", got, id, want)
		}
	}
}
