package pi_test

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

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// simulateWork makes commands of these types follow their member plan: a duration in
// microseconds, and whether to fail.
func simulateWork(s *pi.Server, kinds ...string) {
	engine := s.Parts().Engine
	for _, kind := range kinds {
		s.Handle(kind, func(x *command.Execution) command.Outcome { return simulate(engine, x) })
	}
}

func simulate(engine *command.Engine, x *command.Execution) command.Outcome {
	plan, _ := x.Text("plan")
	var takes int
	var fails bool
	_, _ = fmt.Sscan(plan, &takes, &fails) // without a plan it takes no time
	var o command.Outcome
	if fails {
		o = command.Failed("it failed")
	}
	if takes == 0 {
		return o
	}
	time.AfterFunc(time.Duration(takes)*time.Microsecond, func() {
		engine.Lock()
		defer engine.Unlock()
		x.Finish(o)
	})
	return command.Outcome{Pending: true}
}

// workKinds are commands of every class: a long one, one without a timeout, two that overtake
// others, and those that create, delete and read sessions.
var workKinds = []intent{
	{kind: "bash", mutates: true, limit: 10_000_000},
	{kind: "export_html", mutates: true},
	{kind: "get_tree", control: true, limit: 4_000_000},
	{kind: "create_session"},
	{kind: "list_session_files", control: true, limit: 4_000_000},
	{kind: "switch_session", control: true, limit: 4_000_000},
	{kind: "delete_session", control: true},
}

// frame returns the intent as a frame.
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
	return string(strictjson.Encode(m))
}

// someIntents draws commands of two clients, single or in bursts, that share ids and keys and
// depend on one another. No two of them have the same time.
func someIntents(t *rapid.T) (all []intent) {
	at, burst := 0, 0
	var first intent // of the burst
	for n := range 30 - rapid.IntRange(0, 29).Draw(t, "fewer commands") {
		own := func(n int) string { return fmt.Sprint("c", n) }
		dependsOn := func(ids ...string) []string { return rapid.SliceOfN(rapid.SampledFrom(ids), 0, 2).Draw(t, "on") }
		if burst--; burst > 0 {
			at += 1000
			i := rapid.SampledFrom(workKinds[:3]).Draw(t, "kind of the burst")
			i.at, i.client, i.session, i.id, i.ifVersion = at+n, first.client, first.session, own(n), -1
			i.depends = dependsOn(own(n+1), own(n-1), own(n+2), own(n-2))
			all = append(all, i)
			continue
		}
		at += 1000 * rapid.SampledFrom([]int{20, 300, 5, 1500, 3500}).Draw(t, "after")
		client := rapid.SampledFrom([]int{0, 0, 1, 0}).Draw(t, "client")
		what := rapid.IntRange(0, 15).Draw(t, "what")
		switch {
		case what == 15:
			all = append(all, intent{at: at + n, client: client, leaves: true})
			continue
		case what > 12 && len(all) > 0: // a repetition, perhaps over another connection
			i := rapid.SampledFrom(all).Draw(t, "the same")
			i.at, i.client = at+n, client
			all = append(all, i)
			continue
		}
		i := rapid.SampledFrom(workKinds).Draw(t, "kind")
		i.at, i.client = at+n, client
		i.session = rapid.SampledFrom([]string{"s", "t", "s", "t", "s", "nowhere"}).Draw(t, "session")
		i.id = rapid.SampledFrom([]string{own(n), own(n), own(n), own(n), "a", "b", ""}).Draw(t, "id")
		i.key = rapid.SampledFrom([]string{"", "", "", "", "", "k", "l"}).Draw(t, "key")
		if command.Table[i.kind].Session { // the other commands take no time
			if takes := rapid.SampledFrom([]int{700, 11_000, 50, 0, 4500, 2500}).Draw(t, "takes"); takes > 0 {
				i.takes = 1000*takes + 32*(n+1)
			}
			i.fails = rapid.SampledFrom([]bool{false, false, true, false}).Draw(t, "fails")
			burst, first = rapid.SampledFrom([]int{0, 0, 5, 9}).Draw(t, "burst"), i
		}
		if i.id != "" && rapid.SampledFrom([]bool{false, true, true}).Draw(t, "depends") {
			i.depends = dependsOn(own(n-1), own(n-2), own(n-3), own(n+1), "a", own(n))
		}
		i.ifVersion = -1
		if i.kind != "create_session" && i.kind != "switch_session" && rapid.IntRange(0, 7).Draw(t, "holds to a version") > 5 {
			i.ifVersion = rapid.IntRange(0, 3).Draw(t, "version")
		}
		all = append(all, i)
	}
	return all
}

// describe returns a frame in the notation of the model.
func describe(t *rapid.T, f pitest.Frame) string {
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
	switch {
	case d.Success && d.SessionVersion != nil:
		outcome = fmt.Sprintf("ok %d", *d.SessionVersion)
	case d.Success:
		outcome = "ok"
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
	if strings.HasPrefix(name, command.AnonymousPrefix) {
		name = "anon"
	}
	phase := strings.TrimPrefix(f.Type, "command_")
	return strings.TrimSpace(phase + " " + name + " " + d.CommandType + " " + outcome)
}

// Random commands of two clients have the outcomes of the model, at its times and in the order
// of the specification. The clients are on an open hub or have one principal; the commands have
// ids, keys, dependencies, versions and work; connections end and are replaced.
func TestTheEngineMatchesItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outcomeCounts := map[string]int{}
		// Without the deadline, which a bubble cannot have.
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) {
			principal := rapid.Bool().Draw(rt, "one principal")
			most := rapid.SampledFrom([]int{3, 2000}).Draw(rt, "outcomes")
			playEngine(t, rt, newEngineModel(principal, most), someIntents(rt), outcomeCounts)
		})
		t.Logf("outcomes of commands: %v", outcomeCounts)
	})
}

// outcomes are the kinds of outcomes and a part of each answer.
var outcomes = []string{
	"ok", "ok replayed", "timedOut", "timedOut replayed", "dependsOn:", "Conflicting id '", "Conflicting idempotencyKey", "same lane", "waits for this",
	"depend on itself", "unknown", "failed: ", "mismatch", "not found", "already exists", "it failed",
}

func playEngine(t *testing.T, rt *rapid.T, m *engineModel, all []intent, outcomeCounts map[string]int) {
	_, s := newServer(t, pi.Options{
		Commands:   command.Options{PromptTimeout: 10 * time.Second, CommandTimeout: 4 * time.Second, DependencyTimeout: 3 * time.Second, KeyTTL: 8 * time.Second, MaxOutcomes: m.most},
		GatherTime: -1,
	})
	simulateWork(s, "bash", "export_html", "get_tree", "list_session_files")
	for _, i := range all {
		m.events = append(m.events, modelEvent{i.at, func() { m.submit(i) }})
	}
	m.run()
	if m.tied {
		outcomeCounts["skipped"]++
		rt.Skip("two things happen at once")
	}
	var as pi.ConnOptions
	if m.principal {
		as.Principal = core.Principal{ID: "ann", Authenticated: true}
	}
	host := dial(t, s, as)
	for _, session := range []string{"s", "t"} {
		host.ok(`{"type":"create_session","sessionId":"` + session + `"}`)
	}
	heard := len(host.received())
	clients := [2][]*testClient{{dial(t, s, as)}, {dial(t, s, as)}} // by their connections
	began := time.Now()
	for _, i := range all {
		time.Sleep(time.Until(began.Add(time.Duration(i.at) * time.Microsecond)))
		of := &clients[i.client]
		if now := (*of)[len(*of)-1]; i.leaves {
			now.disconnect()
			*of = append(*of, dial(t, s, as))
		} else {
			now.send(i.frame())
		}
		synctest.Wait()
	}
	time.Sleep(time.Until(began.Add(time.Duration(m.now)*time.Microsecond + time.Second))) // all work has ended
	synctest.Wait()

	events, lanes, phases := map[int][]string{}, map[string]string{}, map[string][3]int{}
	for i, f := range host.received()[heard:] {
		if !strings.HasPrefix(f.Type, "command_") {
			continue
		}
		at := int(host.times[heard+i].Sub(began).Microseconds())
		events[at] = append(events[at], describe(rt, f))
		checkOrder(rt, lanes, phases, f)
	}
	for _, list := range []map[int][]string{events, m.broadcast} {
		for at := range list {
			slices.Sort(list[at])
		}
	}
	if d := cmp.Diff(m.broadcast, events); d != "" {
		rt.Fatalf("events for all clients, by time in us (-model +engine):\n%s", d)
	}
	for client, conns := range clients {
		for conn, c := range conns {
			var got []string
			frames := c.received()
			for i, f := range frames {
				if f.Type == "response" {
					got = append(got, describe(rt, f))
					if frames[i-1].Type != "command_finished" && !strings.HasPrefix(f.Error, "Conflicting") {
						rt.Errorf("%s: got it after %s, want it after its command_finished", f.Raw, frames[i-1].Raw)
					}
				}
			}
			want := slices.Clone(m.answers[[2]int{client, conn}])
			slices.Sort(got)
			slices.Sort(want)
			if d := cmp.Diff(want, got); d != "" {
				rt.Fatalf("the responses of client %d over its connection %d (-model +engine):\n%s", client, conn, d)
			}
			for _, answer := range got {
				for _, outcome := range outcomes {
					if strings.Contains(answer, outcome) {
						outcomeCounts[outcome]++
					}
				}
			}
			c.Close()
		}
	}
	if n := countsOf(s); n.InFlight != 0 || n.Lanes != 0 || n.InFlightBytes != 0 {
		rt.Errorf("at the end: got %+v, want nothing in flight", n)
	}
	host.Close()
}

// checkOrder checks that a command is accepted, started and finished in this order (section
// 7.2), and that the commands of a lane run one at a time (section 7.3). phases counts the
// events of each id.
func checkOrder(t *rapid.T, lanes map[string]string, phases map[string][3]int, f pitest.Frame) {
	var d struct {
		CommandID, CommandType, SessionID, Error string
		Replayed                                 bool
	}
	if err := json.Unmarshal(f.Data, &d); err != nil {
		t.Fatal(err)
	}
	n := phases[d.CommandID]
	limit := 10 * time.Second
	if command.Table[d.CommandType].Control {
		limit = 4 * time.Second
	}
	timedOut := d.Error == command.TimedOut(d.CommandType, limit) // it may never have started
	switch {
	case f.Type == "command_accepted":
		n[0]++
	case f.Type == "command_started":
		n[1]++
	case !d.Replayed && !timedOut:
		n[2]++
	}
	if phases[d.CommandID] = n; n[1] > n[0] || n[2] > n[1] {
		t.Errorf("%s: got the event out of order", f.Raw)
	}
	if d.Replayed || command.Table[d.CommandType].Control {
		return
	}
	beside := "beside the lane: " + d.CommandID
	switch running := lanes[d.SessionID]; f.Type {
	case "command_started":
		if running != "" && d.CommandType == "create_session" {
			lanes[beside] = running
			return
		}
		if running != "" {
			t.Errorf("%s: it starts while %s runs in its lane", f.Raw, running)
		}
		lanes[d.SessionID] = d.CommandID
	case "command_finished":
		if by := lanes[beside]; by != "" && !strings.HasSuffix(d.Error, " already exists") {
			t.Errorf("%s: it made a session while %s ran in its lane", f.Raw, by)
		}
		delete(lanes, beside)
		if running == d.CommandID {
			delete(lanes, d.SessionID)
		}
	}
}
