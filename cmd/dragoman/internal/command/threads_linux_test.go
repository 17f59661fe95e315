package command_test

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// on runs a command line at a terminal of that width and returns what that shows; 0 is no terminal.
func on(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	if columns == 0 {
		_, out, _ := run(t, args...)
		return out
	}
	s := newScreen(t)
	s.resize(t, columns, 24)
	code := command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: s.tty, Err: s.tty})
	text := s.shown()
	if code != command.ExitDone {
		t.Errorf("%q: got exit code %d and %s", args, code, text)
	}
	return text
}

// Conversations and what is found in them come from a real hub, in lines that fit: a pipe gets all of them.
func TestListsOfConversationsFitTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	h, at := served(t)
	claude, ann := joins(t, h, "claude"), h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}, Dialect: "test"})
	t.Cleanup(func() { ann.Close(nil) })
	var ids []any
	for _, r := range []core.Request{
		{Content: "Where is the teapot\x1b[2J that we bought in spring, and who has washed it since then, if anybody?", Thread: "tea"},
		{Content: "A second question, which has nothing to do with it at all"},
	} {
		r.To = core.ToAgent("claude")
		asked, err := ann.Open(r, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for b := nextBatch(t, claude, isAssigned); b.Task.ID() != asked.ID(); b = nextBatch(t, claude, isAssigned) {
		}
		if err := claude.Report(asked.ID(), core.Done{Text: "It is in the kitchen, beside the cups and the sugar, where it has always been."}, nil); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, asked.ID())
	}
	first := string(ids[0].(core.TaskID))
	ids = append(ids, first[len(first)-6:]) // a table at a terminal shows that much of it
	today := regexp.MustCompile(`\d\d:\d\d `)
	for _, tt := range []struct {
		columns uint16
		args    []string
		want    string
	}{
		{60, []string{"threads"}, `THREAD                                STATE  TITLE
%[2]s  done   A second quest…
tea                                   done   Where is the t…
`},
		{80, []string{"threads"}, `THREAD                                STATE  AGENTS  LAST   TITLE
%[2]s  done   claude  12:00  A second question,…
tea                                   done   claude  12:00  Where is the teapot…
`},
		{120, []string{"threads"}, `THREAD                                STATE  AGENTS  LAST   TITLE
%[2]s  done   claude  12:00  A second question, which has nothing to do with it at all
tea                                   done   claude  12:00  Where is the teapot\x1b[2J that we bought in spring, and wh…
`},
		{0, []string{"threads", "--limit=1"}, `THREAD                                STATE  AGENTS  LAST   TITLE
%[2]s  done   claude  12:00  A second question, which has nothing to do with it at all
`},
		{60, []string{"search", "teaPOT"}, `TASK    STATE  AGENT   THREAD  OPENED  FOUND
%[3]s  done   claude  tea     12:00   Where is the teapot\…
`},
		{80, []string{"search", "beside", "the", "cups", "--thread=tea"}, `TASK    STATE  AGENT   THREAD  OPENED  FOUND
%[3]s  done   claude  tea     12:00   It is in the kitchen, beside the cups an…
`},
		{120, []string{"search", "teapot"}, `TASK    STATE  AGENT   THREAD  OPENED  FOUND
%[3]s  done   claude  tea     12:00   Where is the teapot\x1b[2J that we bought in spring, and who has washed it since…
`},
	} {
		got := today.ReplaceAllString(on(t, tt.columns, append(tt.args, "--hub="+at)...), "12:00 ")
		if d := cmp.Diff(fmt.Sprintf(tt.want, ids...), got); d != "" {
			t.Errorf("%q at %d columns (-want +got):\n%s", tt.args, tt.columns, d)
		}
	}
}
