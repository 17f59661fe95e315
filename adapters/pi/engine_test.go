package pi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// toiling has commands of a type do what their field plan says: take so many
// milliseconds, and fail or not.
func toiling(t *testing.T, kinds ...string) {
	t.Helper()
	for _, kind := range kinds {
		before := table[kind]
		with := *before
		with.run = toil
		table[kind] = &with
		t.Cleanup(func() { table[kind] = before })
	}
}

func toil(s *Server, x *execution) outcome {
	plan, _ := x.text("plan")
	var takes int
	var fails bool
	_, _ = fmt.Sscan(plan, &takes, &fails) // without a plan it takes no time
	var o outcome
	if fails {
		o = failed("it failed")
	}
	if takes == 0 {
		return o
	}
	time.AfterFunc(time.Duration(takes)*time.Millisecond, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.finish(x, o)
	})
	return outcome{pending: true}
}

// kindsOfWork are commands of every class: one that takes long, one without a limit,
// one that overtakes, and one that never waits.
var kindsOfWork = []intent{
	{kind: "bash", mutates: true, limit: 10_000},
	{kind: "export_html", mutates: true},
	{kind: "get_tree", control: true, limit: 4000},
	{kind: "list_session_files", control: true, limit: 4000},
}

// frame is the intent on the wire.
func (i intent) frame() string {
	m := map[string]any{"type": i.kind, "sessionId": i.session, "command": "x", "plan": fmt.Sprint(i.takes, i.fails)}
	if i.id != "" {
		m["id"] = i.id
	}
	if i.key != "" {
		m["idempotencyKey"] = i.key
	}
	if i.depends != nil {
		m["dependsOn"] = i.depends
	}
	if i.ifVersion >= 0 {
		m["ifSessionVersion"] = i.ifVersion
	}
	return string(encode(m))
}

func someIntents(t *rapid.T) (all []intent) {
	ids := []string{"a", "b", "c", "d"}
	at := 0
	for n := range rapid.IntRange(1, 20).Draw(t, "commands") {
		if len(all) > 0 && rapid.IntRange(0, 5).Draw(t, "again") == 5 {
			i := rapid.SampledFrom(all).Draw(t, "the same") // sent once more, perhaps over another connection
			at += 7 * rapid.IntRange(1, 700).Draw(t, "later")
			i.at, i.client = at, rapid.IntRange(0, 1).Draw(t, "by")
			all = append(all, i)
			continue
		}
		i := rapid.SampledFrom(kindsOfWork).Draw(t, "kind")
		at += 7 * rapid.IntRange(1, 300).Draw(t, "after")
		i.at, i.client = at, rapid.IntRange(0, 1).Draw(t, "client")
		i.session = rapid.SampledFrom([]string{"s", "s", "s", "t", "nowhere"}).Draw(t, "session")
		i.id = rapid.SampledFrom(append(ids, "", "")).Draw(t, "id")
		i.key = rapid.SampledFrom([]string{"", "", "", "k", "l"}).Draw(t, "key")
		if rapid.IntRange(0, 2).Draw(t, "works") > 0 {
			i.takes = 5*rapid.IntRange(1, 1500).Draw(t, "takes") + n%5
		}
		i.fails = rapid.IntRange(0, 4).Draw(t, "fails") == 0
		if i.id != "" && rapid.Bool().Draw(t, "depends") {
			i.depends = rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3).Draw(t, "on")
		}
		i.ifVersion = -1
		if rapid.IntRange(0, 4).Draw(t, "holds to a version") == 0 {
			i.ifVersion = rapid.IntRange(0, 3).Draw(t, "version")
		}
		all = append(all, i)
	}
	return all
}

// heardIn is what a frame says, in the words of the model.
func heardIn(t *rapid.T, f Frame) string {
	var d struct {
		CommandID, CommandType, Error string
		Success, Replayed             bool
		SessionVersion                *int
	}
	data := f.Data
	if f.Type == "response" {
		data = f.Raw
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%s: %v", f.Raw, err)
	}
	outcome := d.Error
	if d.Success && d.SessionVersion != nil {
		outcome = fmt.Sprintf("ok %d", *d.SessionVersion)
	}
	if strings.HasPrefix(outcome, "Command '") && strings.Contains(outcome, "timed out") && !strings.Contains(outcome, "dependsOn:") {
		outcome += " timedOut"
		if f.Type == "response" && !f.TimedOut {
			t.Errorf("%s: got no timedOut", f.Raw)
		}
	}
	if d.Replayed {
		outcome += " replayed"
	}
	if f.Type == "response" {
		var id, kind string
		_ = json.Unmarshal(f.ID, &id) // it may have none
		_ = json.Unmarshal(f.Command, &kind)
		return id + " " + kind + " " + outcome
	}
	name := d.CommandID
	if strings.HasPrefix(name, anonymous) {
		name = "anon"
	}
	phase := strings.TrimPrefix(f.Type, "command_")
	return strings.TrimSpace(phase + " " + name + " " + d.CommandType + " " + outcome)
}

// Random commands of two clients, with ids, keys, dependencies, versions and work that
// takes its time, come to what the model says, at the moment that it says; the order
// of events is that of the specification.
func TestTheEngineDoesWhatItsModelDoes(t *testing.T) {
	toiling(t, "bash", "export_html", "get_tree", "list_session_files")
	synctest.Test(t, func(t *testing.T) {
		// Without the deadline, which a bubble has none of.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { playEngine(t, rt, someIntents(rt)) })
	})
}

func playEngine(t *testing.T, rt *rapid.T, all []intent) {
	_, s := newStage(t, Options{
		PromptTimeout: 10 * time.Second, CommandTimeout: 4 * time.Second, DependencyTimeout: 3 * time.Second, KeyTTL: 8 * time.Second,
	})
	m := &engineModel{
		dependencyLimit: 3000, ttl: 8000, ids: map[string]*modelled{}, keys: map[string]*modelled{}, versions: map[string]int{"s": 0, "t": 0},
		lanes: map[string]*modelLane{"s": {}, "t": {}, "nowhere": {}}, told: map[int][]string{}, answers: map[int][]string{},
	}
	for _, i := range all {
		m.events = append(m.events, modelEvent{i.at, func() { m.submit(i) }})
	}
	m.run()
	if m.tied {
		rt.Skip("two things happen at once")
	}
	host := dial(t, s, ConnOptions{})
	for _, session := range []string{"s", "t"} {
		host.ok(`{"type":"create_session","sessionId":"` + session + `"}`)
	}
	clients := []*caller{dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})}
	began := time.Now()
	for _, i := range all {
		time.Sleep(time.Until(began.Add(time.Duration(i.at) * time.Millisecond)))
		clients[i.client].send(i.frame())
		synctest.Wait()
	}
	time.Sleep(5 * time.Minute) // all that goes on has ended
	synctest.Wait()

	told, lanes := map[int][]string{}, map[string]string{}
	for i, f := range clients[0].seen() {
		if !strings.HasPrefix(f.Type, "command_") {
			continue
		}
		at := int(clients[0].times[i].Sub(began).Milliseconds())
		told[at] = append(told[at], heardIn(rt, f))
		checkOrder(rt, lanes, f)
	}
	for _, list := range []map[int][]string{told, m.told} {
		for at := range list {
			slices.Sort(list[at])
		}
	}
	if d := cmp.Diff(m.told, told); d != "" {
		rt.Fatalf("what everybody is told, by the time in ms (-model +engine):\n%s", d)
	}
	for n, c := range clients {
		var got []string
		for _, f := range c.seen() {
			if f.Type == "response" {
				got = append(got, heardIn(rt, f))
			}
		}
		want := slices.Clone(m.answers[n])
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("the responses of client %d (-model +engine):\n%s", n, d)
		}
	}
	s.mu.Lock()
	if n := s.counts(); n.InFlight != 0 || n.Lanes != 0 {
		rt.Errorf("in the end: got %+v, want nothing in flight", n)
	}
	s.mu.Unlock()
	for _, c := range append(clients, host) {
		c.Close()
	}
}

// checkOrder holds that the commands of a lane run one at a time (section 7.3).
func checkOrder(t *rapid.T, lanes map[string]string, f Frame) {
	var d struct {
		CommandID, CommandType, SessionID, Error string
		Replayed                                 bool
	}
	if err := json.Unmarshal(f.Data, &d); err != nil {
		t.Fatal(err)
	}
	if d.Replayed || table[d.CommandType].control {
		return
	}
	switch running := lanes[d.SessionID]; f.Type {
	case "command_started":
		if running != "" {
			t.Errorf("%s: it starts while %s runs in its lane", f.Raw, running)
		}
		lanes[d.SessionID] = d.CommandID
	case "command_finished":
		if running == d.CommandID {
			delete(lanes, d.SessionID)
		}
	}
}
