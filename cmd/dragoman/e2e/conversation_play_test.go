package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/dragoman-hub/dragoman/schemas"
)

// player plays a conversation against a hub of its own, in a bubble of fake time. All goroutines
// are idle between two steps, and time passes only in a wait step.
type player struct {
	t         *testing.T
	recording *recording
	update    bool // write down what came instead of judging it

	hub      *hub.Hub
	ctx      context.Context //nolint:containedctx // the program's
	cancel   context.CancelCauseFunc
	acp      *acp.Peers
	pi       *pi.Server // nil until the first client
	piOpts   pi.Options
	pis      map[string]*piAgent   // the agents of pi, by name
	disk     string                // the root of the conversation's paths, or ""
	clients  *conversation.Service // likewise
	http     http.Handler
	acpHTTP  *acp.HTTP
	refused  parallax.Refusals
	editors  editorAgents
	mcp      *mcp.Server
	a2a      *a2a.Server
	peers    map[string]*peer
	calls    map[string]*httpCall
	bindings bindings
	closed   chan struct{} // closed once the hub has stopped
}

// newPlayer returns a player of a hub, and of all that its dialects share.
func newPlayer(t *testing.T, opts hub.Options) *player {
	t.Helper()
	p := &player{t: t, peers: map[string]*peer{}, calls: map[string]*httpCall{}, bindings: bindings{values: map[string]*jsonValue{}}}
	opts.ID, opts.Schema = "the-hub", schemas.Compile
	p.hub = coretest.NewHub(t, opts)
	p.acp = acp.NewPeers(p.hub, acp.PeersOptions{})
	p.a2a = a2a.New(p.hub, a2a.Options{Version: "1.0.0", Principal: func(*http.Request) (core.Principal, error) {
		return core.Principal{ID: "local", Operator: true}, nil
	}})
	p.mcp = mcp.New(p.hub, mcp.Options{Anonymous: core.Principal{ID: "mcp"}, Version: "1.0.0"})
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// change may set other options of the hub.
func runConversation(t *testing.T, s *recording, update bool, change ...func(*hub.Options)) {
	t.Helper()
	steps := s.steps
	var opts hub.Options
	var piOpts pi.Options
	if len(steps) > 0 && steps[0].heading == "hub" {
		if err := hubSettings(&opts, &piOpts, steps[0].body); err != nil {
			t.Fatal(steps[0].problem(s, "%v", err))
		}
		steps = steps[1:]
	}
	for _, c := range change {
		c(&opts)
	}
	p := newPlayer(t, opts)
	p.recording, p.update, p.bindings.writing, p.piOpts = s, update, update, piOpts
	defer p.end()
	for _, st := range steps {
		if err := p.step(st); err != nil {
			t.Fatal(st.problem(s, "%v", err))
		}
		synctest.Wait()
	}
	for _, name := range slices.Sorted(maps.Keys(p.peers)) {
		if rest := p.peers[name].take(); len(rest) > 0 {
			t.Errorf("%s: at the end %s has received what no step shows:\n%s", s.path, name, prettyAll(rest))
		}
	}
}

// hubSettings changes the settings of the hub.
func hubSettings(opts *hub.Options, piOpts *pi.Options, body string) error {
	set, err := settings(body)
	for name, value := range set {
		number, wrong := strconv.Atoi(value)
		switch agent, limited := strings.CutPrefix(name, "daily tokens of agent "); {
		case limited:
			opts.Budgets = append(opts.Budgets, usage.Budget{By: usage.ByAgent, Key: agent, Tokens: int64(number), Per: usage.Daily})
		case name == "queue length":
			opts.Limits.QueueLength = number
		case name == "retries":
			opts.Limits.Retries = number
		case name == "hops":
			opts.Limits.Hops = number
		case piSetting(piOpts, name, number):
		default:
			wrong = fmt.Errorf("the hub of a conversation has no setting %q", name)
		}
		err = errors.Join(err, wrong)
	}
	return err
}

// end closes everything.
func (p *player) end() {
	for _, c := range p.calls {
		c.cancel()
		<-c.done
	}
	for _, peer := range p.peers {
		peer.leave(link.Reason{Cause: link.Normal})
	}
	if p.closed != nil {
		<-p.closed
	}
	p.cancel(nil)
	p.mcp.Close()
	p.a2a.Close()
	if p.acpHTTP != nil {
		p.acpHTTP.Close()
	}
	if p.pi != nil {
		p.pi.Close()
	}
}

// stepKinds are the kinds of steps, by their heading.
var stepKinds = []struct {
	heading *regexp.Regexp
	act     func(*player, *step, []string) error
}{
	{regexp.MustCompile(`^(.+) connects$`), (*player).connect},
	{regexp.MustCompile(`^(our .+) starts$`), (*player).startAgent},
	{regexp.MustCompile(`^hub > (.+?)( in any order)?$`), (*player).receive},
	{regexp.MustCompile(`^(our .+) > gateway()$`), (*player).receive},
	{regexp.MustCompile(`^gateway > (our .+)$`), (*player).send},
	{regexp.MustCompile(`^(.+) > hub$`), (*player).send},
	{regexp.MustCompile(`^(.+) > hub ([0-9]+) times$`), (*player).sendTimes},
	{regexp.MustCompile(`^(.+) > hub verbatim$`), (*player).sendVerbatim},
	{regexp.MustCompile(`^(.+) leaves$`), (*player).leave},
	{regexp.MustCompile(`^gateway closes (our .+)$`), (*player).leave},
	{regexp.MustCompile(`^(.+) is cut off$`), (*player).cutOff},
	{regexp.MustCompile(`^(.+) stops reading$`), (*player).stopReading},
	{regexp.MustCompile(`^hub closes (.+)$`), (*player).checkClosed},
	{regexp.MustCompile(`^(our .+) ends$`), (*player).checkClosed},
	{regexp.MustCompile(`^http (\S+) (GET|POST|PATCH) (\S+)$`), (*player).request},
	{regexp.MustCompile(`^hub answers http (\S+)$`), (*player).checkAnswer},
	{regexp.MustCompile(`^hub streams to http (\S+)$`), (*player).checkStream},
	{regexp.MustCompile(`^wait (\S+)$`), (*player).wait},
	{regexp.MustCompile(`^hub stops within (\S+)$`), (*player).stopHub},
	{regexp.MustCompile(`^file (\S+)$`), (*player).writeFile},
	{regexp.MustCompile(`^directory (\S+)$`), (*player).makeDirectory},
	{regexp.MustCompile(`^link (\S+) to (\S+)$`), (*player).makeLink},
	{regexp.MustCompile(`^hub wrote (\S+)$`), (*player).checkFile},
	{regexp.MustCompile(`^hub counts$`), (*player).checkCounters},
}

func (p *player) step(st *step) error {
	for _, a := range stepKinds {
		if m := a.heading.FindStringSubmatch(st.heading); m != nil {
			return a.act(p, st, m[1:])
		}
	}
	return errors.New("unknown heading: see schemas/conversations/README.md")
}

func (p *player) peer(name string) (*peer, error) {
	peer := p.peers[name]
	if peer == nil {
		return nil, fmt.Errorf("%s is not connected: an earlier step must connect it", name)
	}
	return peer, nil
}

// send sends the frames of a peer.
func (p *player) send(st *step, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	for _, v := range st.values() {
		filled, err := p.bindings.fill(v)
		if err != nil {
			return err
		}
		if err := p.deliver(func(ctx context.Context) error { return peer.end.send(ctx, filled) }, v.line()); err != nil {
			return err
		}
	}
	return nil
}

// sendTimes sends the same frames several times.
func (p *player) sendTimes(st *step, m []string) error {
	often, err := strconv.Atoi(m[1])
	for i := 0; err == nil && i < often; i++ {
		err = p.send(st, m)
	}
	return err
}

// rawBytes are bytes in a verbatim line that no text can hold.
var rawBytes = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// sendVerbatim sends each line as it is.
func (p *player) sendVerbatim(st *step, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	for line := range strings.Lines(st.body) {
		frame := rawBytes.ReplaceAllFunc([]byte(strings.TrimSuffix(line, "\n")), func(b []byte) []byte {
			n, _ := strconv.ParseUint(string(b[2:]), 16, 8) // the expression takes two digits
			return []byte{byte(n)}
		})
		if err := p.deliver(func(ctx context.Context) error { return peer.end.sendRaw(ctx, frame) }, line); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends a frame, which the other end takes within a minute, and waits until all goroutines
// are idle.
func (p *player) deliver(send func(context.Context) error, frame string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := send(ctx); err != nil {
		return fmt.Errorf("sending %s: %w", frame, err)
	}
	synctest.Wait()
	return nil
}

// receive compares what a peer received with the step.
func (p *player) receive(st *step, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	received := peer.take()
	for _, v := range received {
		if err := checkSchema(strings.TrimPrefix(m[0], "our "), v); err != nil {
			return fmt.Errorf("%w:\n%s", err, v.pretty())
		}
	}
	return p.check(st, received, m[1] != "")
}

func (p *player) leave(_ *step, m []string) error {
	return p.disconnect(m[0], link.Reason{Cause: link.Normal})
}

func (p *player) cutOff(_ *step, m []string) error {
	return p.disconnect(m[0], link.Reason{Cause: link.PeerGone})
}

func (p *player) disconnect(name string, r link.Reason) error {
	peer, err := p.peer(name)
	if err != nil {
		return err
	}
	synctest.Wait()
	if rest := peer.take(); len(rest) > 0 {
		return fmt.Errorf("%s has received what no step shows:\n%s", name, prettyAll(rest))
	}
	peer.leave(r)
	if how := peer.getEnd(); strings.HasPrefix(name, "our ") {
		p.peers[name] = peer // a later step checks how it ended
	} else if how != nil {
		delete(p.peers, name)
	}
	return nil
}

func (p *player) stopReading(_ *step, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	peer.stop()
	<-peer.read
	return nil
}

// checkClosed compares how a connection ended with the step.
func (p *player) checkClosed(st *step, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	how := peer.getEnd()
	if how == nil {
		return errors.New("the connection is still open")
	}
	if rest := peer.take(); len(rest) > 0 {
		return fmt.Errorf("%s has received what no step shows:\n%s", m[0], prettyAll(rest))
	}
	peer.leave(link.Reason{Cause: link.Normal})
	delete(p.peers, m[0])
	return p.check(st, []*jsonValue{how}, false)
}

func (p *player) wait(_ *step, m []string) error {
	d, err := time.ParseDuration(m[0])
	if err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// stopHub stops the hub; running tasks have the given time to end.
func (p *player) stopHub(st *step, m []string) error {
	patience, err := time.ParseDuration(m[0])
	if err != nil {
		return err
	}
	vs := st.values()
	if len(vs) != 1 || vs[0].open != '"' {
		return errors.New("want the reason, as one JSON string")
	}
	reason, closed := vs[0].text, make(chan struct{})
	p.closed = closed
	go func() {
		defer close(closed)
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := p.hub.Close(ctx, reason); err != nil {
			p.t.Errorf("%s: stopping the hub: got %v, want no error", p.recording.path, err)
		}
	}()
	return nil
}

// checkCounters compares the counters that the step names.
func (p *player) checkCounters(st *step, _ []string) error {
	counters, got := p.hub.Counters(), &jsonValue{open: '{'}
	want := &jsonValue{open: '{'}
	if vs := st.values(); len(vs) == 1 && vs[0].open == '{' {
		want = vs[0]
	}
	for _, name := range want.keys {
		got.set(name, &jsonValue{text: strconv.FormatInt(counters[name], 10)})
	}
	if len(want.keys) == 0 {
		for _, name := range slices.Sorted(maps.Keys(counters)) {
			got.set(name, &jsonValue{text: strconv.FormatInt(counters[name], 10)})
		}
	}
	return p.check(st, []*jsonValue{got}, false)
}
