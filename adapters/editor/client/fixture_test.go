package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// peer is the program at the other end: a test writes what it says.
type peer struct {
	*testing.T
	end *coretest.End[[]byte, []byte]
	ran <-chan error // the end of Run
}

// next returns the next message of the hub.
func (p *peer) next() jsonrpc.Message {
	p.Helper()
	line, err := p.end.Receive(p.Context())
	if err != nil {
		p.Fatalf("the agent waits for a message and gets %v", err)
	}
	m, fault := jsonrpc.Read(line, strictjson.Limits{})
	if fault != nil {
		p.Fatalf("the hub sent %s: %v", line, fault)
	}
	return m
}

// wants returns the next message of the hub, which must be of the method.
func (p *peer) wants(method string) jsonrpc.Message {
	p.Helper()
	m := p.next()
	if m.Method != method {
		p.Fatalf("the agent got %s, want %s", m.Whole.Raw(), method)
	}
	return m
}

// answers takes the response to a request of the agent.
func (p *peer) answers(id string) string {
	p.Helper()
	m := p.next()
	if m.Kind() != jsonrpc.Response || string(m.ID) != id {
		p.Fatalf("the agent got %.300s, want the answer to %s", m.Whole.Raw(), id)
	}
	if m.Err != nil {
		return m.Err.Error()
	}
	return string(m.Result.Raw())
}

// says sends a line.
func (p *peer) says(line string, args ...any) {
	p.Helper()
	if len(args) > 0 {
		line = fmt.Sprintf(line, args...)
	}
	if err := p.end.Send(p.Context(), []byte(line)); err != nil {
		p.Fatalf("the agent cannot say %.100s: %v", line, err)
	}
}

func (p *peer) replies(m jsonrpc.Message, result string) {
	p.Helper()
	p.says(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func (p *peer) fails(m jsonrpc.Message, code int, message string) {
	p.Helper()
	p.says(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, message)
}

// updates sends an update of a session.
func (p *peer) updates(session, update string) {
	p.Helper()
	p.says(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, session, update)
}

func (p *peer) text(session, text string) {
	p.Helper()
	p.updates(session, fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// hello answers initialize with capabilities.
func (p *peer) hello(capabilities string) {
	p.Helper()
	m := p.wants("initialize")
	p.replies(m, `{"protocolVersion":1,"agentCapabilities":`+capabilities+`,"authMethods":[],"agentInfo":{"name":"stub","version":"0"}}`)
}

// begins answers session/new.
func (p *peer) begins(session string) {
	p.Helper()
	p.replies(p.wants("session/new"), fmt.Sprintf(`{"sessionId":%q}`, session))
}

// dies closes the connection, as a program that has died.
func (p *peer) dies() { _ = p.end.Close(link.Reason{Cause: link.PeerGone}) }

// served is a hub with an agent of this dialect.
type served struct {
	*testing.T
	hub         *hub.Hub
	client      *client.Agent
	agent, user *hub.Session
	peers       chan *peer // of each run
	ready       chan agent.Profile
	stop        func() // giving it tasks

	mu     sync.Mutex
	counts map[string]int
}

// serve runs a test with an agent. The test begins when the agent is started.
func serve(t *testing.T, edit func(*client.Options), test func(s *served)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &served{T: t, peers: make(chan *peer, 1), ready: make(chan agent.Profile, 1), counts: map[string]int{}}
		opts := client.Options{Dir: "/w", Version: "9", Count: s.count, Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
			ours, theirs := coretest.Pipe[[]byte, []byte](16)
			s.peers <- &peer{T: t, end: theirs}
			return ours, nil
		}}
		if edit != nil {
			edit(&opts)
		}
		s.client = client.New(opts)
		s.hub = coretest.NewHub(t, hub.Options{})
		s.agent = s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "editor"})
		s.user = s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "user", Operator: true}, Dialect: "test"})
		s.stop = func() {}
		test(s)
		s.stop()
		s.user.Close(nil)
		s.agent.Close(nil)
	})
}

func (s *served) count(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name]++
}

func (s *served) counted(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

// run starts the agent, and returns its end of the connection and a function that waits for the
// end of Run.
func (s *served) run() (*peer, func() error) {
	s.Helper()
	ctx, stop := context.WithCancel(s.Context())
	ran := make(chan error, 1)
	go func() { ran <- s.client.Run(ctx, func(p agent.Profile) { s.ready <- p }) }()
	p := <-s.peers
	p.ran = ran
	return p, func() error {
		stop()
		return <-ran
	}
}

// failing runs an agent that is not going to be ready, and returns what Run returns.
func (s *served) failing() (*peer, <-chan error) {
	s.Helper()
	ran := make(chan error, 1)
	go func() {
		ran <- s.client.Run(s.Context(), func(agent.Profile) { s.Error("the agent is ready") })
	}()
	return <-s.peers, ran
}

// join waits until the agent is ready and gives it tasks, at most many at once.
func (s *served) join(many int) {
	s.Helper()
	profile := <-s.ready
	if err := s.agent.Join(core.Card{ID: "a", Features: profile.Features, MaxConcurrent: many, Metadata: profile.Metadata}, hub.JoinOptions{}); err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = coretest.Serve(ctx, s.agent, s.client, nil)
	}()
	s.stop = func() {
		stop()
		<-ended
	}
}

// start runs the agent, says hello and gives it tasks.
func (s *served) start(capabilities string) (*peer, func() error) {
	s.Helper()
	p, stop := s.run()
	p.hello(capabilities)
	s.join(4)
	return p, stop
}

func (s *served) ask(content string) *task.Task {
	s.Helper()
	return s.open(core.Request{Content: content})
}

func (s *served) open(r core.Request) *task.Task {
	s.Helper()
	r.To = core.ToAgent("a")
	t, err := s.user.Open(r, hub.OpenOptions{Unwatched: true})
	if err != nil {
		s.Fatal(err)
	}
	return t
}

// told returns the events of a task as text, without those that the hub says itself.
func (s *served) told(t *task.Task) []string {
	s.Helper()
	s.settle()
	var all []string
	for _, e := range t.Events() {
		switch e.Body.Kind() {
		case core.KindOpened, core.KindAssigned, core.KindSessionStarted, core.KindAccepted:
			continue
		}
		text, err := json.Marshal(e.Body)
		if err != nil {
			s.Fatal(err)
		}
		line := e.Body.Kind().String() + " " + string(text)
		if e.Foreign != nil {
			line += " + " + string(e.Foreign.JSON)
		}
		all = append(all, line)
	}
	return all
}

// settle waits until nothing happens any more, and turns have ended whose agents have answered: a
// second of the fake clock.
func (s *served) settle() {
	synctest.Wait()
	time.Sleep(time.Second)
	synctest.Wait()
}

// tells fails the test unless the events of a task are these.
func (s *served) tells(t *task.Task, want ...string) {
	s.Helper()
	got := s.told(t)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.Errorf("the task told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// gone fails the test unless err is the end of a connection.
func (s *served) gone(err error) {
	s.Helper()
	var r *link.Reason
	if !errors.As(err, &r) {
		s.Errorf("Run returned %v, want the reason of the end of the connection", err)
	}
}

// other joins another agent, which answers each question with a text, and returns what asks it.
func (s *served) other(id core.AgentID, answer string) func(thread core.ThreadID, question string) *task.Task {
	s.Helper()
	session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: "test"})
	if err := session.Join(core.Card{ID: id}, hub.JoinOptions{}); err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = coretest.Serve(ctx, session, answering(answer), nil)
	}()
	before := s.stop
	s.stop = func() {
		stop()
		<-ended
		session.Close(nil)
		before()
	}
	return func(thread core.ThreadID, question string) *task.Task {
		s.Helper()
		t, err := s.user.Open(core.Request{To: core.ToAgent(id), Content: question, Thread: thread}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			s.Fatal(err)
		}
		return t
	}
}

// answering is an agent that says one thing.
type answering string

func (answering) Run(context.Context, func(agent.Profile)) error { return nil }

func (a answering) Work(_ context.Context, t agent.Turn) error {
	return t.Report(core.Text{Text: string(a)}, nil)
}

// wait fails the test unless the task ends as done.
func (s *served) wait(t *task.Task) {
	s.Helper()
	s.settle()
	if a := t.Answer(); a.End != core.KindDone {
		s.Fatalf("got %s (%v), want it done", a.End, a.Fault)
	}
}
