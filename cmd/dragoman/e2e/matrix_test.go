package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// clientDialect is a dialect of a requester: how to connect in it, and what it can express.
type clientDialect struct {
	name string
	// connect connects a requester with the given id.
	connect func(t *testing.T, h *testHub, id string) requester
	// streams is set if an answer arrives in chunks; otherwise it is folded into one.
	streams bool
	// data is set if requests and answers have structured data.
	data bool
	// foldsData is the counter of data that becomes text, if there is no field for it.
	foldsData string
	// longRequest is the refusal of a request of longTextBytes; nil if it is accepted.
	longRequest *outcome
	// delegates is set if only a delegated task can be cancelled.
	delegates bool
	// deadlines is set if a request can have a deadline; otherwise that of the settings counts,
	// and late is the outcome of a task that exceeds it, if it is none of a failed task.
	deadlines bool
	late      outcome
	// done is the outcome of an answer, and reported that of a delegated task.
	done, reported outcome
	// failed is the outcome of a failed task, refused that of a refused request.
	failed, refused func(*core.Fault) outcome
	// cancelled is the outcome of a task that was cancelled for a reason.
	cancelled func(reason string) outcome
	// reports is how the dialect changes the reports, by subject; nil if it has none.
	reports map[string]func([]string) []string
	// fileInText appends the file to the text of an answer, if the dialect folds it there.
	fileInText func(text string) string
	// injectsLater is set if context that an agent cannot take becomes its next turn.
	injectsLater bool
	// reconnects cuts off the requester in the middle of an answer, checks what happens to
	// the task, and returns a word for it.
	reconnects func(t *testing.T, d *pair) string
}

// clientDialects are the requesters' dialects, each on every transport it has.
func clientDialects() []*clientDialect {
	return []*clientDialect{
		piOverWebSocket(), piOverStdio(), acpOverWebSocket(), acpOverHTTP(), acpOverStdio(), covenByTools(), parallaxByExtension(), overREST(), overMCP(), overA2A(true), overA2A(false),
		nativeOverWebSocket(), nativeOverStdio(), editorOverWebSocket(), editorOverStdio(),
	}
}

// pair is a requester and an agent, on a hub of their own.
type pair struct {
	*testHub
	asks    *clientDialect
	answers *agentDialect
	agent   core.AgentID
	requester
}

// cases are what every pair runs. Each returns a word for the table.
var cases = []struct {
	name string
	run  func(*testing.T, *pair) string
}{
	{"short text", shortText},
	{"burst", burst},
	{"data", structuredData},
	{"long text", longText},
	{"failure", failure},
	{"cancel", cancelMidway},
	{"deadline", deadlinePasses},
	{"agent cut", agentCutOff},
	{"asker cut", askerCutOff},
	{"unknown agent", unknownAgent},
	{"full queue", fullQueue},
	{"tool", toolEvents},
	{"approval", approval},
	{"injection", injection},
	{"usage", usageEvents},
	{"file", fileSent},
	{"two at once", twoAtOnce},
}

// essential are the cases that make test runs.
var essential = []string{"short text", "failure", "cancel", "approval"}

// The matrix: every dialect that can ask, with every dialect that can answer, over real sockets and
// pipes.
func TestEveryDialectAsksEveryOther(t *testing.T) {
	t.Parallel()
	askEach(t, agentDialects()...)
}

// askEach has every dialect that can ask do so with agents of each of some dialects, and logs the
// results as a table.
func askEach(t *testing.T, all ...*agentDialect) {
	t.Helper()
	results := &matrix{cells: map[string]string{}}
	t.Run("matrix", func(t *testing.T) {
		for _, asks := range clientDialects() {
			for _, answers := range all {
				t.Run(asks.name+" asks "+answers.name, func(t *testing.T) {
					t.Parallel()
					runCases(t, asks, answers, results)
				})
			}
		}
	})
	t.Log("\n" + results.table(all))
}

// runCases runs with a pair all cases that the agent's dialect can express.
func runCases(t *testing.T, asks *clientDialect, answers *agentDialect, results *matrix) {
	h := newTestHub(t, func(c *config.Config) {
		c.Limits.QueueLength = 1
		// The cases fail often, which would open the breakers and exceed the rates.
		c.Pi.Retries, c.Pi.AgentFailures, c.Pi.Rates = 0, 0, config.PiRates{}
	})
	d := &pair{testHub: h, asks: asks, answers: answers, agent: core.AgentID(answers.name + "-agent")}
	answers.start(t, h, d.agent, 4)
	d.requester = asks.connect(t, h, "asker")
	t.Cleanup(d.leave)
	for _, c := range cases {
		if answers.unsaid[c.name] != "" {
			results.set(asks.name, answers.name, c.name, "unsaid")
			continue
		}
		if testing.Short() && !slices.Contains(essential, c.name) {
			results.set(asks.name, answers.name, c.name, "left")
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			label := "FAILED"
			defer func() {
				if t.Failed() {
					label = "FAILED"
				}
				results.set(asks.name, answers.name, c.name, label)
			}()
			label = c.run(t, d)
		})
	}
}

// streamed reports whether answers arrive in chunks: both dialects must have them.
func (d *pair) streamed() bool { return d.asks.streams && !d.answers.atOnce }

// startedSignal returns the signal for half of the answer, or for the start of the handler where
// the agent sends everything at the end.
func (d *pair) startedSignal() string {
	if d.answers.atOnce {
		return " begun"
	}
	return " text"
}

// query returns a query with an instruction.
func (d *pair) query(act string) query {
	return query{to: string(d.agent), content: act, deadline: ample}
}

// ask sends an instruction and waits for the outcome.
func (d *pair) ask(t *testing.T, act string) outcome {
	t.Helper()
	return d.begin(d.query(act)).wait(t)
}

// matrix has the result of every case of every pair.
type matrix struct {
	mu    sync.Mutex
	cells map[string]string
}

func (m *matrix) set(asks, answers, name, label string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cells[asks+"|"+answers+"|"+name] = label
}

// table returns the matrix: a row for each pair, a column for each case, and below it why cases are
// unsaid.
func (m *matrix) table(all []*agentDialect) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out bytes.Buffer
	heads := []string{"asks", "answers"}
	for _, c := range cases {
		heads = append(heads, c.name)
	}
	table := tabwriter.NewWriter(&out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(heads, "\t"))
	for _, asks := range clientDialects() {
		for _, answers := range all {
			row := []string{asks.name, answers.name}
			for _, c := range cases {
				row = append(row, cmp.Or(m.cells[asks.name+"|"+answers.name+"|"+c.name], "-"))
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
	}
	if err := table.Flush(); err != nil {
		return err.Error()
	}
	for _, answers := range all {
		for _, c := range slices.Sorted(maps.Keys(answers.unsaid)) {
			fmt.Fprintf(&out, "unsaid by %s: %s: %s\n", answers.name, c, answers.unsaid[c])
		}
	}
	return out.String()
}

// wantResult compares outcomes. An empty wanted message is not compared.
func wantResult(t *testing.T, got, want outcome) {
	t.Helper()
	if want.Message == "" {
		got.Message = ""
	}
	if got.Chunks > 0 && want.Chunks > 0 {
		got.Chunks, want.Chunks = 1, 1 // the hub decides how many
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

// firstDifference returns the place where two texts differ.
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
