package command_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestTheCallMustBeNamedIfSeveralWait(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/approvals", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"approvals":[{"task":"1","id":"a"},{"task":"2","id":"b c"},{"task":"2","id":"d"}]}`)
	})
	mux.HandleFunc("GET /v1/tasks/3", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) })
	mux.HandleFunc("POST /v1/tasks/{id}/decisions", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body) // it has the id of the call
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	hub := "--hub=" + server.URL
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"1"}, command.ExitDone, "a approved by"},
		{[]string{"2", "--all"}, command.ExitDone, "b c and all other tools of the task approved by"},
		{[]string{"2"}, command.ExitUsage, `name one of "b c", d`},
		{[]string{"3"}, command.ExitFailed, "no approval is waiting"},
	} {
		code, out, stderr := run(t, append([]string{"approve", hub}, c.args...)...)
		if code != c.code || !strings.Contains(out+stderr, c.want) {
			t.Errorf("approve %q: got %d, %q and %q, want %d and %q", c.args, code, out, stderr, c.code, c.want)
		}
	}
}
