package command_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestFlagsThatDoNotApplyAreRefused(t *testing.T) {
	for _, tt := range [][]string{
		{"--state", "tasks", "ID", "--state=failed"},
		{"--limit", "tasks", "ID", "--limit=3"},
		{"--limit", "tasks", "ID", "--readers", "--limit=3"},
		{"--config", "check", "--envelope", "--config=f"},
		{"--http-addr", "check", "--envelope", "--http-addr=127.0.0.1:0"},
	} {
		if code, _, stderr := run(t, tt[1:]...); code != command.ExitUsage || !strings.Contains(stderr, tt[0]) {
			t.Errorf("%q: got %d and %q, want %d and %s named", tt[1:], code, stderr, command.ExitUsage, tt[0])
		}
	}
}

func TestARefusalOfTheHubNamesTheFlag(t *testing.T) {
	mux := http.NewServeMux()
	refuse := func(pattern, detail string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"code":"invalid","detail":%q}`, detail)
		})
	}
	refuse("PATCH /v1/agents/a", "max_concurrent: want 0 or more, got -1")
	refuse("POST /v1/tasks", "deadline_ms: want 1 to 604800000, got 2592000000")
	refuse("GET /v1/tasks", "?before=nope: send the id of a task")
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, tt := range []struct{ args, want string }{
		{"config set-agent a --max-concurrent -1", "dragoman: --max-concurrent: max_concurrent: want"},
		{"ask a b --timeout 30d", "dragoman: --timeout: deadline_ms: want"},
		{"ask a b", "dragoman: deadline_ms: want"},
		{"tasks --before nope", "dragoman: --before: ?before=nope: send"},
		{"usage --by foo", `dragoman: --by "foo": use agent, thread, requester, day or task`},
	} {
		code, _, stderr := run(t, append(strings.Fields(tt.args), "--hub", server.URL)...)
		if code != command.ExitUsage || !strings.HasPrefix(stderr, tt.want) {
			t.Errorf("%s: got %d and %q, want %d and %q", tt.args, code, stderr, command.ExitUsage, tt.want)
		}
	}
}

func TestNoTimeIsNegative(t *testing.T) {
	var check func(c *cobra.Command)
	checked := 0
	check = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			check(below)
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "duration" {
				return
			}
			checked++
			if err := f.Value.Set("-1s"); err == nil {
				t.Errorf("%s --%s=-1s is accepted, want it refused", c.CommandPath(), f.Name)
			}
		})
	}
	check(command.NewRoot(command.Streams{}))
	if checked == 0 {
		t.Error("got no flag with a time")
	}
	const want = `dragoman: --wait "-1s": want a time that is not negative, such as 30s, 1h30m, 7d or 2w; see 'dragoman ask --help'` + "\n"
	if code, _, stderr := run(t, "ask", "--wait=-1s", "a", "b"); code != command.ExitUsage || stderr != want {
		t.Errorf("got %d and %q, want %d and %q", code, stderr, command.ExitUsage, want)
	}
}
