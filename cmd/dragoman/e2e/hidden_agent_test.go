package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// What a hidden agent may be known by. No word of it is part of another.
const (
	hiddenAgent = "secret-agent"
	hiddenChild = "secret-child" // of the settings
	missing     = "absent-agent"
	misspelt    = "secret-agen"
)

// visibleAgent is one that everybody may see. In a list that is ordered by id it comes after the hidden one. Its name is
// so unlike those above that nobody is told of it as the nearest.
const visibleAgent = "visible-to-everybody"

var marks = []string{hiddenAgent, hiddenChild, "Moneypenny", "espionage", "whitehall", "garrote", "walther", "burn after reading"}

// hidden is a hub with an agent that alice works with and bob may not see.
type hidden struct {
	*testHub
	cc       *grpc.ClientConn
	task     core.TaskID // of alice, which runs at the hidden agent
	question string      // that it asks there
	agents   int         // without those of visits
}

// visit is somebody who reads.
type visit struct {
	*hidden
	*testing.T
	who string
}

func (v visit) header() http.Header { return http.Header{"Authorization": {"Bearer " + v.who}} }

func (v visit) ctx() context.Context {
	return metadata.AppendToOutgoingContext(v.Context(), "authorization", "Bearer "+v.who)
}

// http sends a request and returns all of the answer. A stream of events is read until it tells of the hidden agent:
// for who may not see that it has an end.
func (v visit) http(method, url, body string, headers ...string) string {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), watchdog)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		v.Fatal(err)
	}
	r.Header = v.header()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		v.Fatal(err)
	}
	defer resp.Body.Close()
	head := fmt.Sprintf("%d %v\n", resp.StatusCode, resp.Header)
	streams := method == http.MethodGet && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	var text []byte
	for some := make([]byte, 32<<10); err == nil && !(streams && hasMark(string(text))); {
		var n int
		n, err = resp.Body.Read(some)
		text = append(text, some[:n]...)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		v.Fatalf("%s %s as %s: got %v after\n%s\nwant an end", method, url, v.who, err, text)
	}
	return head + string(text)
}

// finds reports whether the reader may find the hidden agent.
func (v visit) finds() bool { return v.who == "alice" || v.who == "eve" }

// hasMark reports whether a text tells of the hidden agent.
func hasMark(text string) bool {
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.Contains(text, mark) })
}

// talk sends frames over a WebSocket and returns all that comes until it has each of the texts.
func (v visit) talk(url string, header http.Header, frames []string, until ...string) string {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.Context(), watchdog)
	defer cancel()
	for key, values := range v.header() {
		header[key] = values
	}
	conn, resp, err := websocket.Dial(ctx, strings.Replace(url, "http://", "ws://", 1), &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		if resp == nil {
			v.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		return resp.Status + string(text)
	}
	defer eventually(v.T, "the agent that came has left", func() error {
		if got := len(v.service.Hub().Agents(core.Principal{Operator: true})); got > v.agents && v.agents > 0 {
			return fmt.Errorf("got %d agents, want %d", got, v.agents)
		}
		return nil
	})
	defer conn.CloseNow()
	conn.SetReadLimit(10 << 20)
	for _, frame := range frames {
		if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			v.Fatal(err)
		}
	}
	var all string
	for slices.ContainsFunc(until, func(text string) bool { return !strings.Contains(all, text) }) {
		_, frame, err := conn.Read(ctx)
		if err != nil {
			v.Fatalf("%s as %s: got %v after\n%s\nwant each of %q", url, v.who, err, all, until)
		}
		all += string(frame) + "\n"
	}
	return all
}

// newHidden starts the hub. Alice may do everything, eve read everything, and the others everything
// with open-agent and visible-to-everybody. None is an operator.
func newHidden(t *testing.T) *hidden {
	t.Helper()
	with := ruled(t, "- {who: alice, may: \"*\"}\n- {who: eve, may: [see, read, approve, answer, operate]}\n- {who: [bob, carol, david], may: \"*\", to: [open-agent, visible-to-everybody, \"pack:*\"]}\n")
	h := &hidden{testHub: newTestHub(t, func(c *config.Config) {
		with(c)
		keepFrames(c)
		c.Auth.Tokens = tokensFile(t, "alice", "bob", "carol", "david", "eve")
		c.Agents = config.Agents{{Name: hiddenChild, Dialect: "text", Process: config.Process{Command: []string{"cat"}}}}
	})}
	h.await(t, "joined "+hiddenChild)
	var err error
	if h.cc, err = grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cc.Close() })
	h.joinAgent(t, "open-agent")
	h.joinAgent(t, visibleAgent)

	host := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "m"}})
	t.Cleanup(func() { host.Close(nil) })
	card := core.Card{
		ID: hiddenAgent, Name: "Moneypenny", Dialect: "test", Capabilities: []string{"ui", "espionage"}, Domains: []string{"whitehall"}, Tools: []string{"garrote"}, Model: "walther",
		MaxConcurrent: 8, Features: core.FeatureApprovals | core.FeatureInjection | core.FeatureCancellation | core.FeatureStreaming | core.FeatureNotices,
	}
	if err := host.Join(card, corehub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := hubAgent{host, t}
	alice := visit{h, t, "alice"}

	// A task that has ended, so that there is usage and a turn of a thread, and a run of pi.
	alice.http(http.MethodPost, h.url()+"/v1/tasks", `{"to":"secret-agent","content":"go","thread":"trip"}`)
	agent.report(agent.nextTask(), core.Usage{Input: 3}, core.Done{Text: "burn after reading"})
	piRun := make(chan struct{})
	go func() {
		defer close(piRun)
		alice.talk(h.url()+"/ws/pi", http.Header{}, []string{
			`{"id":"1","type":"create_session","sessionId":"hers","agent":"secret-agent"}`, `{"id":"2","type":"prompt","sessionId":"hers","message":"go"}`,
		}, `"id":"2","type":"response"`)
	}()
	agent.report(agent.nextTask(), core.Done{Text: "burn after reading"})
	<-piRun

	// One that runs, with an approval and a question.
	alice.http(http.MethodPost, h.url()+"/v1/tasks", `{"to":"secret-agent","content":"go","thread":"trip"}`)
	task := agent.nextTask()
	h.task = task.ID()
	watcher := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "alice", Authenticated: true}})
	t.Cleanup(func() { watcher.Close(nil) })
	watcher.WatchQuestions(question.View{Tag: "alice", Thread: "trip", For: watcher.Identity().Principal})
	agent.report(task, core.Accepted{}, core.Text{Text: "burn after reading"}, core.ToolCall{ID: "k", Name: "garrote", Input: "{}"}, core.ApprovalRequested{ID: "k", Name: "garrote", Input: "{}"})
	agent.CallTool("q", "ask_user", json.RawMessage(`{"question":"burn after reading?"}`))
	for deadline := time.Now().Add(watchdog); h.question == ""; {
		if open := h.service.Hub().Questions(watcher.Identity().Principal); len(open) > 0 {
			h.question = open[0].ID
		} else if time.Now().After(deadline) {
			b, err := host.Next(t.Context())
			t.Fatalf("%+v %v: the question of the agent does not come", b.Tool, err)
		}
	}
	h.agents = len(h.service.Hub().Agents(core.Principal{Operator: true}))
	go func() { // it answers whatever else it is asked
		for {
			b, err := host.Next(context.Background())
			if err != nil {
				return
			}
			if has[core.Assigned](b) {
				_ = host.Report(b.Task.ID(), core.Done{Text: "burn after reading"}, nil)
			}
		}
	}()
	return h
}

// hiddenSurface is something that can be read of the hub.
type hiddenSurface struct {
	// finds says that alice and eve find the hidden agent there.
	finds bool
	// names says that a reader may name an agent there, so that the answers about one that is
	// hidden and one that is not there are compared.
	names bool
	// read reads it; nil sends the request of endpointAccess. id is the agent that is named.
	read func(v visit, id string) string
	// because says why nothing is read there.
	because string
}

// TestNothingTellsOfAnAgentThatOneMayNotSee reads everything that can be read of a hub, over every
// dialect, as a principal that no rule lets see an agent, as who asked it and as who may
// read what others ask. It fails for an endpoint of which it does not know how to read it.
func TestNothingTellsOfAnAgentThatOneMayNotSee(t *testing.T) {
	t.Parallel()
	h := newHidden(t)
	for _, e := range endpointsOf(t, h.testHub) {
		name := nameOfEndpoint(e)
		s, known := hiddenSurfaces[name]
		switch {
		case !known:
			t.Errorf("%s: got no row, want one that says how it is read", name)
			continue
		case s.because != "":
			continue
		case s.read == nil:
			s.read = func(v visit, id string) string { return v.request(name, id) }
		}
		text := s.read(visit{h, t, "bob"}, misspelt)
		for _, mark := range marks {
			if strings.Contains(text, mark) {
				t.Errorf("%s: bob finds %q in\n%.2000s", name, mark, text)
			}
		}
		for _, who := range []string{"alice", "eve"} {
			if !s.finds {
				break
			}
			text := s.read(visit{h, t, who}, misspelt)
			if !hasMark(text) {
				t.Errorf("%s: %s finds no agent in\n%.2000s", name, who, text)
			}
		}
		if s.names {
			there, absent := blurred(s.read(visit{h, t, "carol"}, hiddenAgent)), blurred(s.read(visit{h, t, "david"}, missing))
			if diff := cmp.Diff(absent, there); diff != "" {
				t.Errorf("%s: what one is told of an agent that is hidden differs from one that is not there (-not there +hidden)\n%.2000s", name, diff)
			}
		}
	}
	for there, absent := range map[string]string{
		"capability:espionage": "capability:carpentry", "domain:whitehall": "domain:greenwich", "domain:whitehall.*": "domain:greenwich.*", "Moneypenny": "Pennymoney",
		strings.ToUpper(hiddenAgent): strings.ToUpper(missing), string(roster.Alias(hiddenAgent)): string(roster.Alias(missing)),
	} {
		for _, name := range []string{"POST /v1/tasks", "POST /v1/notices", "GET /v1/agents/{id}"} {
			first := strings.ReplaceAll(visit{h, t, "carol"}.request(name, there), there, "ID")
			second := strings.ReplaceAll(visit{h, t, "david"}.request(name, absent), absent, "ID")
			if diff := cmp.Diff(blurred(second), blurred(first)); diff != "" {
				t.Errorf("%s for %s: what one is told of it differs from what is not there (-not there +hidden)\n%.2000s", name, there, diff)
			}
		}
	}
	for name := range hiddenSurfaces {
		if _, known := endpointAccess[name]; !known {
			t.Errorf("%s: got a row, but no such endpoint", name)
		}
	}
}

var (
	ids     = regexp.MustCompile(hiddenAgent + "|" + missing + "|carol|david|espionage|carpentry|whitehall|greenwich")
	changes = regexp.MustCompile(`seconds:[0-9]+( +nanos:[0-9]+)?|[0-9a-f]{8}-[0-9a-f-]{27}|[A-Za-z0-9_+/=-]{24,}|\b[0-9a-f]{8}\b|[0-9][0-9:.TZ-]*|instance_id:"[a-z0-9]+"|(Date|Retry-After):\[[^\]]*\]`)
)

// blurred returns the lines of a text without the ids of agents and readers, and without what
// differs between any two answers, such as times, and lists of what happened before.
func blurred(text string) []string {
	lines := strings.Split(changes.ReplaceAllString(ids.ReplaceAllString(text, "ID"), "#"), "\n")
	slices.Sort(lines) // answers may come in any order
	return slices.DeleteFunc(lines, func(line string) bool {
		return strings.Contains(line, `"recentEvents"`) || strings.Contains(line, `"tasks":[`)
	})
}

// request sends the request of an endpoint of REST about what alice has.
func (v visit) request(name, id string) string {
	v.Helper()
	method, path, _ := strings.Cut(name, " ")
	parameter := map[string]string{"tasks": string(v.task), "threads": "trip", "questions": v.question, "agents": id, "principals": "alice"}
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if part == "{id}" {
			parts[i] = parameter[parts[i-1]]
		}
	}
	if method == "*" {
		method = http.MethodGet
	}
	path = strings.Join(parts, "/") + map[string]string{"GET /v1/tasks/{id}/events": "?follow=false", "GET /v1/usage": "?by=agent"}[name]
	return v.http(method, v.url()+path, strings.ReplaceAll(endpointAccess[name].body, "none", id))
}
