package command_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// Colours are for terminals that support them, or where the flag asks for them: it overrides NO_COLOR.
func TestColoursAreForTerminals(t *testing.T) {
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, eventsOf(core.Done{Text: "hello"}))
	}))
	defer hub.Close()
	for _, tt := range []struct {
		terminal      bool
		noColor, term string
		flag          string
		want          bool
	}{
		{true, "", "xterm", "", true},
		{true, "", "xterm", "--color=never", false},
		{true, "1", "xterm", "", false},
		{true, "1", "xterm", "--color=always", true},
		{true, "", "dumb", "", false},
		{false, "", "xterm", "", false},
		{false, "", "xterm", "--color=auto", false},
		{false, "1", "dumb", "--color=always", true},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.term)
		var out io.WriteCloser
		var shown func() string
		if tt.terminal {
			out, shown = terminal(t)
		} else {
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			out, shown = write, func() string {
				_ = write.Close()
				text, _ := io.ReadAll(read)
				_ = read.Close()
				return string(text)
			}
		}
		args := append([]string{"tail", "t", "--hub=" + hub.URL}, strings.Fields(tt.flag)...)
		var errs strings.Builder
		code := command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: out, Err: &errs})
		text := shown()
		if code != command.ExitDone || strings.Contains(text, "\x1b[") != tt.want || !strings.Contains(text, "hello") || errs.Len() > 0 {
			t.Errorf("%+v: got %d, %q and %q, want colours: %t", tt, code, text, errs.String(), tt.want)
		}
	}
}
