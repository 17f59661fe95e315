package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/core"
)

// tongue is a dialect of who asks: how to connect in it, and what it can say.
type tongue struct {
	name string
	// connect connects somebody of this dialect with the given id.
	connect func(t *testing.T, s *stage, id string) requester
	// streams says that an answer is told in pieces; otherwise it is folded into one.
	streams bool
	// data says that structures are asked and answered as such.
	data bool
	// longQuestion is what is said of a question of 900 KB; nil takes it.
	longQuestion *telling
	// delegates says that only what was delegated can be taken back.
	delegates bool
	// deadlines says that an inquiry can say how long it may take.
	deadlines bool
	// done is the end of an answer, and of one that was delegated.
	done, reported telling
	// failed words the fault of a task, refused that of one that was never taken on.
	failed, refused func(*core.Fault) telling
	// cancelled words the end of what was taken back for a reason.
	cancelled func(reason string) telling
	// tells is what becomes of sights in the dialect, by what they are about; nil where
	// it tells nothing of it.
	tells map[string]func([]string) []string
	// fileInText is how an answer in words goes on with the file of a scene, where the
	// dialect folds it there.
	fileInText func(text string) string
	// injectsLater says that what an agent does not take while it works is said to it as
	// the next turn.
	injectsLater bool
	// afterCut cuts off who asked in the middle of an answer, checks what becomes of
	// it, and says that in a word.
	afterCut func(t *testing.T, d *duo) string
}

// tongues are the dialects in which one can ask, each on every transport it has.
func tongues() []*tongue {
	return []*tongue{
		piOverWebSocket(), piOverStdio(), acpOverWebSocket(), acpOverHTTP(), acpOverStdio(), covenByTools(), parallaxByExtension(), overREST(),
	}
}

// duo is one who asks and one who answers, on a hub of their own.
type duo struct {
	*stage
	asks    *tongue
	answers string       // the dialect
	agent   core.AgentID // who answers
	requester
}

// cases are what every pair goes through. Each says in a word what came of it.
var cases = []struct {
	name string
	run  func(*testing.T, *duo) string
}{
	{"short text", shortText},
	{"burst", burst},
	{"data", structuredData},
	{"900 KB", longText},
	{"failure", failure},
	{"cancel", cancelMidway},
	{"deadline", deadlinePasses},
	{"agent cut", agentCutOff},
	{"asker cut", askerCutOff},
	{"unknown agent", unknownAgent},
	{"full queue", fullQueue},
	{"tool", toolLife},
	{"approval", approval},
	{"injection", injection},
	{"usage", tokens},
	{"file", fileSent},
}

// The matrix: every dialect that can ask, with every dialect that can answer, over
// real sockets and pipes.
func TestWhateverTheDialectsEveryQuestionComesToWhatTheyPromise(t *testing.T) {
	results := &matrix{cells: map[string]string{}}
	t.Run("matrix", func(t *testing.T) {
		for _, asks := range tongues() {
			for _, answers := range append(slices.Clip(demo.Answerers), gatewayName) {
				t.Run(asks.name+" asks "+answers, func(t *testing.T) {
					t.Parallel()
					playAll(t, asks, answers, results)
				})
			}
		}
	})
	t.Log("\n" + results.table())
}

// playAll plays all cases with a pair.
func playAll(t *testing.T, asks *tongue, answers string, results *matrix) {
	s := newStage(t, func(c *config.Config) {
		c.Limits.QueueLength = 1
		// A failure is what is looked at, and there are many in a minute.
		c.Pi.Retries, c.Pi.Breakers.AgentFailures, c.Pi.Rates = 0, 0, config.PiRates{}
	})
	d := &duo{stage: s, asks: asks, answers: answers, agent: core.AgentID(answers + "-agent")}
	s.cast(t, answers, d.agent, 4)
	d.requester = asks.connect(t, s, "asker")
	t.Cleanup(d.leave)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			word := "FAILED"
			defer func() {
				if t.Failed() {
					word = "FAILED"
				}
				results.enter(asks.name, answers, c.name, word)
			}()
			word = c.run(t, d)
		})
	}
}

// inPieces says that answers are told as they come: where who asks is told pieces and
// who answers says them.
func (d *duo) inPieces() bool { return d.asks.streams && d.answers != gatewayName }

// underway is the fact of a key that says that half of an answer has come, or where
// that is not said before the end, that the agent is at it.
func (d *duo) underway() string {
	if d.answers == gatewayName {
		return " begun"
	}
	return " text"
}

// inquiry asks the agent to play a scene.
func (d *duo) inquiry(act string) inquiry {
	return inquiry{to: string(d.agent), content: act, deadline: ample}
}

// ask asks the agent to play a scene and waits for what comes of it.
func (d *duo) ask(t *testing.T, act string) telling {
	t.Helper()
	return d.begin(d.inquiry(act)).outcome(t)
}

// matrix is what came of every case of every pair.
type matrix struct {
	mu    sync.Mutex
	cells map[string]string
}

func (m *matrix) enter(asks, answers, name, word string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells[asks+"|"+answers+"|"+name] = word
}

// table prints the matrix: a row for each pair, a column for each case.
func (m *matrix) table() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out bytes.Buffer
	heads := []string{"asks", "answers"}
	for _, c := range cases {
		heads = append(heads, c.name)
	}
	table := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(heads, "\t"))
	for _, asks := range tongues() {
		for _, answers := range append(slices.Clip(demo.Answerers), gatewayName) {
			row := []string{asks.name, answers}
			for _, c := range cases {
				row = append(row, cmp.Or(m.cells[asks.name+"|"+answers+"|"+c.name], "-"))
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
	}
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	return out.String()
}

// same compares what was told with what was to be told; what want leaves empty of
// the words is not compared.
func same(t *testing.T, got, want telling) {
	t.Helper()
	if want.Words == "" {
		got.Words = ""
	}
	if got.Pieces > 0 && want.Pieces > 0 {
		got.Pieces, want.Pieces = 1, 1 // how many is the hub's to choose
	}
	if got.Text != want.Text {
		t.Errorf("got %d bytes of text, want %d; they differ from %s", len(got.Text), len(want.Text), firstDifference(got.Text, want.Text))
	}
	got.Text, want.Text = "", ""
	if !bytes.Equal(got.Data, want.Data) {
		t.Errorf("got the data %s, want %s", got.Data, want.Data)
	}
	got.Data, want.Data = nil, nil
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("\ngot  %s\nwant %s", g, w)
	}
}

// firstDifference shows where two texts part.
func firstDifference(got, want string) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	show := func(s string) string {
		from, to := max(0, n-20), min(len(s), n+40)
		return fmt.Sprintf("%q", strings.ToValidUTF8(s[min(from, len(s)):to], "?"))
	}
	return fmt.Sprintf("byte %d: got ...%s, want ...%s", n, show(got), show(want))
}
