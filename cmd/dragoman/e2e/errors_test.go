package e2e

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAWrongCommandLineIsAnsweredWithWhatToWrite(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.REST.BodyBytes = 1_000_000 })
	h.startAgent(t, parallax.Dialect, "actor", 1)
	hub, pi, grpc, unused := h.url(), "http://"+h.service.Addresses().Pi, h.service.Addresses().GRPC, fixedAddr(t)
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
		{[]string{"ask"}, command.ExitUsage, "TO is missing: write 'dragoman ask TO [WORD...]"},
		{[]string{"delegate"}, command.ExitUsage, "TO is missing: write 'dragoman delegate TO [WORD...]"},
		{[]string{"agent", "--dialect", "acp", "--name", "a"}, command.ExitUsage, "-- COMMAND [ARG...]'; see 'dragoman agent --help'"},
		{[]string{"tail", ""}, command.ExitUsage, "TASK is empty: write 'dragoman tail [TASK]"},
		{[]string{"agents", ""}, command.ExitUsage, "ID is empty: write 'dragoman agents [ID]"},
		{[]string{"ask", "", "hello"}, command.ExitUsage, "TO is empty: write 'dragoman ask TO [WORD...]"},
		{[]string{"deny", "task", ""}, command.ExitUsage, "CALL is empty: write 'dragoman deny [TASK [CALL]]"},
		{[]string{"ask", "actor", "", "--hub", hub}, command.ExitUsage, "the content is empty: say what is wanted"},
		{[]string{"serve", "now", "please"}, command.ExitUsage, `unexpected argument "now please": write 'dragoman serve [flags]'`},
		{[]string{"agents", "a", "b"}, command.ExitUsage, `unexpected argument "b": write 'dragoman agents [ID]`},
		{[]string{"tail", "a", "b"}, command.ExitUsage, `unexpected argument "b": write 'dragoman tail [TASK]`},
		{[]string{"tail", "--color", "blue"}, command.ExitUsage, `--color "blue": use auto, always or never`},
		{[]string{"ask", "a", "b", "--timeout", "-1s"}, command.ExitUsage, `--timeout "-1s": want a time that is not negative, such as 30s, 1h30m, 7d or 2w`},
		{[]string{"ask", "a", "b", "--timeout", "0"}, command.ExitUsage, "--timeout 0s: want at least 1ms"},
		{[]string{"ask", "a", "b", "--file", "/none"}, command.ExitUsage, "--file /none: no such file or directory; name a file that you may read"},
		{[]string{"ask", "a", "b", "--data", "x"}, command.ExitUsage, "--data is not JSON: write an object such as"},
		{[]string{"ask", "somebody", "b", "--hub", hub}, command.ExitFailed, `no agent "somebody" is here; 'dragoman agents -o wide' lists who is here`},
		{[]string{"ask", "actor", "b", "--hub", hub, "--file", file}, command.ExitFailed, "send less, attachments included, or say where it is (a path, a link); the setting rest.body_bytes sets the limit"},
		{[]string{"agent", "--dialect", "acp", "--name", "a", "--concurrent", "0", "--", "cat"}, command.ExitUsage, "--concurrent 0: want at least 1"},
		{[]string{"agent", "--dialect", "acp", "--name", "a", "--", "no-such-command-here"}, command.ExitUsage, "the command cannot be run"},
		{[]string{"ask", "a", "b", "--timeout", "long"}, command.ExitUsage, `--timeout "long": want a time such as 30s, 1h30m, 7d or 2w; see 'dragoman ask --help'`},
		{[]string{"ask", "a", "b", "--max-tokens", "few"}, command.ExitUsage, `--max-tokens "few": want a whole number; see`},
		{[]string{"ask", "a", "b", "--file", ""}, command.ExitUsage, "--file is empty: give the file, or leave it out"},
		{[]string{"ask", "a", "b", "--data", ""}, command.ExitUsage, "--data is empty: give the JSON, or leave it out"},
		{[]string{"delegate", "a", "b", "--background", ""}, command.ExitUsage, "--background is empty: give the JSON, or leave it out"},
		{[]string{"delegate", "a", "b", "--thread", ""}, command.ExitUsage, "--thread is empty: give the id, or leave it out"},
		{[]string{"serve", "--stdio=maybe"}, command.ExitUsage, `--stdio "maybe": want true or false; see`},
		{[]string{"serve", "--http_addr", ":1"}, command.ExitUsage, "unknown flag --http_addr: did you mean --http-addr? See"},
		{[]string{"serve", "--purple"}, command.ExitUsage, "unknown flag --purple; see 'dragoman serve --help'"},
		{[]string{"serve", "-c", "x"}, command.ExitUsage, "unknown flag -c; see"},
		{[]string{"agents", "--hub"}, command.ExitUsage, "--hub needs a value; see"},
		{[]string{"tsks"}, command.ExitUsage, `unknown command "tsks": did you mean 'dragoman tasks'? See 'dragoman --help'`},
		{[]string{"princ"}, command.ExitUsage, `unknown command "princ": did you mean 'dragoman principals'? See 'dragoman --help'`},
		{[]string{"help", "sreve"}, command.ExitUsage, `unknown command "sreve": did you mean 'dragoman serve'? See 'dragoman --help'`},
		{[]string{"help", "frobnicate"}, command.ExitUsage, `unknown command "frobnicate": see 'dragoman --help'`},
		{[]string{"help", "config", "frobnicate"}, command.ExitUsage, `unknown command "frobnicate": see 'dragoman config --help'`},
		{[]string{"config", "set-agnt", "x"}, command.ExitUsage, `unknown command "set-agnt": did you mean 'dragoman config set-agent'? See 'dragoman config --help'`},
		{[]string{"config", "frobnicate"}, command.ExitUsage, `unknown command "frobnicate": see 'dragoman config --help'`},
		{[]string{"agents", "restrat", "bob"}, command.ExitUsage, `unexpected argument "bob": did you mean 'dragoman agents restart'? Else write 'dragoman agents [ID] [flags]'; see 'dragoman agents --help'`},
		{[]string{"completion", "bsh"}, command.ExitUsage, `unknown command "bsh": did you mean 'dragoman completion bash'? See 'dragoman completion --help'`},
		{[]string{"completion", "bash", "x"}, command.ExitUsage, `unexpected argument "x": write 'dragoman completion bash'; see`},
		{[]string{"hubs", "frget", "x"}, command.ExitUsage, `did you mean 'dragoman hubs forget'?`},
		{[]string{"frobnicate", "now"}, command.ExitUsage, `unknown command "frobnicate": see 'dragoman --help'`},
		{[]string{"ask", "a", "b", "--timeout", "7 days"}, command.ExitUsage, `--timeout "7 days": want a time such as 30s, 1h30m, 7d or 2w`},
		{[]string{"stdio", "--snapshots", "some"}, command.ExitUsage, `--snapshots "some": use all or none`},
		{[]string{"stdio", "--snapshots", "none", "--dialect", "acp"}, command.ExitUsage, `--snapshots is for --dialect pi alone`},
		{[]string{"ask", "a", "b", "--timeout", "30"}, command.ExitUsage, `--timeout "30": want a time such as 30s, 1h30m, 7d or 2w: write it with its unit, such as 30s`},
		{[]string{"agent", "sed", "-e", "s/a/b/"}, command.ExitUsage, "--name is missing: name the agent, before the command"},
		{[]string{"agent", "--dialect", "cvoen", "--name", "a", "--", "cat"}, command.ExitUsage, `--dialect "cvoen": use coven`},
		{[]string{"agent", "--dialect", "smoke", "--name", "a", "--", "cat"}, command.ExitUsage, `--dialect "smoke": use acp, coven, native or parallax`},
		{[]string{"agent", "--dialect", "editor", "--name", "a", "--", "cat"}, command.ExitUsage, `--dialect "editor" is what a command speaks, not how it joins: write --speaks editor`},
		{[]string{"agent", "--speaks", "pirpc", "--name", "a", "--", "cat"}, command.ExitUsage, `--speaks "pirpc": use pi-rpc`},
		{[]string{"agent", "--speaks", "editor", "--name", "a", "--", "no-such-command-here"}, command.ExitUsage, "the command cannot be run: no-such-command-here is not found in PATH: install it, or write its whole path"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--hub", pi, "--", "cat"}, command.ExitFailed, "is not a hub, or another listener of it: set --hub to the address that the hub logs when it is ready (426 Upgrade Required)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", "", "--", "cat"}, command.ExitUsage, "--grpc-addr is empty: give the address, or leave it out"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--grpc-addr", grpc, "--", "cat"}, command.ExitUsage, "--dialect acp does not use --grpc-addr: use --hub"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--domain", "A B", "--", "cat"}, command.ExitUsage, `--domain "A B": write words with dots between, such as family.calendar`},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "actor", "--hub", hub, "sed", "-e", "p"}, command.ExitFailed, "agent actor already registered: choose another id, such as actor-1, or wait"},
		{[]string{"agent", "--dialect", parallax.Dialect, "--name", "actor", "--hub", hub, "--", "cat"}, command.ExitFailed, "choose another id, such as actor-1, or wait"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "actor", "--grpc-addr", grpc, "--", "cat"}, command.ExitFailed, "agent actor already registered: choose another id, such as actor-1, or wait"},
		{[]string{"agent", "--speaks", "native", "--name", "actor", "--hub", hub, "--", "sh", "-c", joinsNatively}, command.ExitFailed, "agent actor already registered: choose another id, such as actor-1, or wait"},
		{[]string{"serve", "--http-addr", ":70000"}, command.ExitUsage, `--http-addr :70000: "70000" is no port (0 to 65535); write it as host:port`},
		{[]string{"serve", "--http-addr", "300.1.1.1:80"}, command.ExitUsage, `--http-addr 300.1.1.1:80: "300.1.1.1" is no IP address; write it`},
		{[]string{"serve", "--http-addr", "8080", "--pi-addr", "300.1.1.1:80"}, command.ExitUsage, "\ndragoman: --pi-addr 300.1.1.1:80: \"300.1.1.1\" is no IP address"},
		{[]string{"serve", "--grpc-addr", grpc, "--http-addr", h.service.Addresses().HTTP, "--pi-addr", "127.0.0.1:0"}, command.ExitFailed, "bind: address already in use; choose other addresses with --grpc-addr, --http-addr (port 0 picks a free one)"},
		{[]string{"serve", "--config", "/none.yaml"}, command.ExitUsage, "--config /none.yaml: no such file or directory; name a YAML file"},
		{append([]string{"serve"}, shut...), command.ExitUsage, "nothing could reach the hub: set one of"},
		{append([]string{"check"}, shut...), command.ExitUsage, "nothing could reach the hub: set one of"},
		{append([]string{"serve", "--stdio", "--data-dir", file}, shut...), command.ExitFailed, "--data-dir " + file},
		{append([]string{"serve", "--stdio", "--ready-file", "/none/x"}, shut...), command.ExitFailed, "--ready-file /none/x"},

		{[]string{"agents", "--hub", "127.0.0.1:8080"}, command.ExitUsage, `--hub "127.0.0.1:8080": write it as http://host:port`},
		{[]string{"agents", "--hub", "localhost"}, command.ExitUsage, `--hub "localhost": write it as`},
		{[]string{"stdio", "--hub", "ftp://localhost"}, command.ExitUsage, `--hub "ftp://localhost": write it as`},
		{[]string{"agents", "--hub", "http://" + unused}, command.ExitFailed, "start one with 'dragoman serve', or name another with --hub (dial tcp " + unused + ": connect: connection refused)"},
		{[]string{"stdio", "--hub", "http://" + unused}, command.ExitFailed, "or name another with --hub (dial tcp " + unused + ": connect: connection refused)"},
		{[]string{"agent", "--dialect", acp.Dialect, "--name", "a", "--hub", "http://" + unused, "--", "cat"}, command.ExitFailed, "with --hub (dial tcp " + unused + ": connect: connection refused)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", unused, "--", "cat"}, command.ExitFailed, "with --grpc-addr (dial tcp " + unused + ": connect: connection refused)"},
		{[]string{"agents", "--hub", "http://" + grpc}, command.ExitFailed, "is not a hub, or another listener of it: set --hub to the address that the hub logs when it is ready"},
		{[]string{"stdio", "--hub", "http://" + grpc}, command.ExitFailed, "is not a hub, or another listener of it"},
		{[]string{"agents", "--hub", pi}, command.ExitFailed, "is not a hub, or another listener of it: set --hub to the address that the hub logs when it is ready (426 Upgrade Required)"},
		{[]string{"agent", "--dialect", coven.Name, "--name", "a", "--grpc-addr", h.service.Addresses().HTTP, "--", "cat"}, command.ExitFailed, "is not a hub, or another listener of it"},
	} {
		code, out, stderr := run(t, tt.args...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("dragoman %q: got %d and %q, want %d and %q", tt.args, code, stderr, tt.code, tt.want)
		}
		// Of several settings that are wrong each has its line.
		problems := 1 + strings.Count(tt.want, "\n")
		if lines := strings.Count(stderr, "\n"); strings.Count(stderr, "dragoman: ") != problems || lines != problems || out != "" {
			t.Errorf("dragoman %q: got %q and %q, want %d line on stderr and nothing on stdout", tt.args, stderr, out, problems)
		}
	}
}

func TestAnEmptyListIsReportedOnStderr(t *testing.T) {
	h := newTestHub(t, nil)
	for name, want := range map[string]string{"agents": "no agents are connected", "usage": "no agent has reported any tokens"} {
		if code, out, printed := run(t, name, "--hub", h.url()); code != command.ExitDone || out != "" || !strings.Contains(printed, want) {
			t.Errorf("%s: got %d, %q and %q, want %q on stderr", name, code, out, printed, want)
		}
	}
}

func TestStdioEndsAtOnceWithoutInput(t *testing.T) {
	h := newTestHub(t, nil)
	for _, dialect := range []string{"pi", "acp"} {
		if code, _, stderr := run(t, "stdio", "--dialect", dialect, "--hub", h.url()); code != command.ExitDone || stderr != "" {
			t.Errorf("%s: got %d and %q, want the end at once", dialect, code, stderr)
		}
	}
}

func TestStdioEndsAfterARefusalWithoutAnID(t *testing.T) {
	h := newTestHub(t, nil)
	for _, line := range []string{
		`{"id":"a","type":"list_sessions","x":1,"x":2}`, `{"ID":"a","type":"list_sessions"}`, `{"id":"a"`, `{"id":"a","type":"response"}`,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		code, stdout, stderr := runWith(ctx, line+"\n", "stdio", "--hub", h.url())
		if ctx.Err() != nil || code != command.ExitDone || strings.Count(stdout, `"success":false`) != 1 {
			t.Errorf("%s: got %d, %q and %q, want one failure and the end", line, code, stdout, stderr)
		}
		cancel()
	}
}

func TestAnUnknownPathIsAnsweredWithTheKnownOnes(t *testing.T) {
	h := newTestHub(t, nil)
	for _, path := range []string{"/v2/tasks", "/v1x"} {
		status, answer := post(t, h.service.Addresses().HTTP, path, "{}", nil)
		for _, want := range []string{`"code":"unsupported"`, "/v1", "/ws/agent", "/ws/acp", "/ws/pi", "/healthz"} {
			if status != http.StatusNotFound || !strings.Contains(answer, want) {
				t.Errorf("%s: got %d and %s, want %d and %s", path, status, answer, http.StatusNotFound, want)
			}
		}
	}
}

// joinsNatively is a native agent that joins and waits for the end.
const joinsNatively = `printf '%s\n' '{"call":{"id":"1","act":"join","command":{"card":{}}}}'; cat >/dev/null`
