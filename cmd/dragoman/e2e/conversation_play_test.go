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

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/usage"
	"github.com/dragoman-hub/dragoman/schemas"
)

// storyPlayer plays a story to a hub of its own. It lives in a bubble of fake time:
// between two steps everything comes to rest, and time passes only where the story
// says so.
type storyPlayer struct {
	t      *testing.T
	story  *story
	update bool // write down what came instead of judging it

	hub     *hub.Hub
	ctx     context.Context //nolint:containedctx // that of the program, which the story is
	cancel  context.CancelCauseFunc
	acp     *acp.Peers
	pi      *pi.Server // nil until the first client
	piOpts  pi.Options
	disk    string                // where the paths of the story begin, or ""
	clients *conversation.Service // likewise
	http    http.Handler
	acpHTTP *acp.HTTP
	refused parallax.Refusals
	mcp     *mcp.Server
	peers   map[string]*storyPeer
	calls   map[string]*storyCall
	names   names
	closed  chan struct{} // closed once the hub has stopped
}

func playStory(t *testing.T, s *story, update bool) {
	t.Helper()
	p := &storyPlayer{
		t: t, story: s, update: update, acp: acp.NewPeers(acp.PeersOptions{}), peers: map[string]*storyPeer{}, calls: map[string]*storyCall{}, names: names{map[string]*jsonValue{}, update},
	}
	steps := s.steps
	opts := hub.Options{ID: "the-hub", Schema: schemas.Compile}
	if len(steps) > 0 && steps[0].heading == "hub" {
		if err := hubSettings(&opts, &p.piOpts, steps[0].body); err != nil {
			t.Fatal(steps[0].problem(s, "%v", err))
		}
		steps = steps[1:]
	}
	p.hub = coretest.NewHub(t, opts)
	p.mcp = mcp.New(p.hub, mcp.Options{Anonymous: core.Principal{ID: "mcp"}, Version: "1.0.0"})
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	defer p.end()
	for _, st := range steps {
		if err := p.step(st); err != nil {
			t.Fatal(st.problem(s, "%v", err))
		}
		synctest.Wait()
	}
	for _, name := range slices.Sorted(maps.Keys(p.peers)) {
		if rest := p.peers[name].take(); len(rest) > 0 {
			t.Errorf("%s: at the end of the story %s has got what no step tells of:\n%s", s.path, name, pagesOf(rest))
		}
	}
}

// hubSettings changes the numbers of the hub that a story is played to.
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
			opts.Rules = policy.Rules{Hops: number}
		case piSetting(piOpts, name, number):
		default:
			wrong = fmt.Errorf("the hub of a story has no setting %q", name)
		}
		err = errors.Join(err, wrong)
	}
	return err
}

// end takes everything down.
func (p *storyPlayer) end() {
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
	if p.acpHTTP != nil {
		p.acpHTTP.Close()
	}
	if p.pi != nil {
		p.pi.Close()
	}
}

// acts are what a step can be, by its heading.
var acts = []struct {
	heading *regexp.Regexp
	act     func(*storyPlayer, *storyStep, []string) error
}{
	{regexp.MustCompile(`^(.+) connects$`), (*storyPlayer).connects},
	{regexp.MustCompile(`^(our .+) starts$`), (*storyPlayer).starts},
	{regexp.MustCompile(`^hub > (.+?)( in any order)?$`), (*storyPlayer).hears},
	{regexp.MustCompile(`^(our .+) > gateway()$`), (*storyPlayer).hears},
	{regexp.MustCompile(`^gateway > (our .+)$`), (*storyPlayer).says},
	{regexp.MustCompile(`^(.+) > hub$`), (*storyPlayer).says},
	{regexp.MustCompile(`^(.+) > hub ([0-9]+) times$`), (*storyPlayer).saysOften},
	{regexp.MustCompile(`^(.+) > hub verbatim$`), (*storyPlayer).saysVerbatim},
	{regexp.MustCompile(`^(.+) leaves$`), (*storyPlayer).leaves},
	{regexp.MustCompile(`^gateway closes (our .+)$`), (*storyPlayer).leaves},
	{regexp.MustCompile(`^(.+) is cut off$`), (*storyPlayer).isCutOff},
	{regexp.MustCompile(`^(.+) stops reading$`), (*storyPlayer).stopsReading},
	{regexp.MustCompile(`^hub closes (.+)$`), (*storyPlayer).isClosed},
	{regexp.MustCompile(`^(our .+) ends$`), (*storyPlayer).isClosed},
	{regexp.MustCompile(`^http (\S+) (GET|POST|PATCH) (\S+)$`), (*storyPlayer).requests},
	{regexp.MustCompile(`^hub answers http (\S+)$`), (*storyPlayer).isAnswered},
	{regexp.MustCompile(`^wait (\S+)$`), (*storyPlayer).waits},
	{regexp.MustCompile(`^hub stops within (\S+)$`), (*storyPlayer).hubStops},
	{regexp.MustCompile(`^file (\S+)$`), (*storyPlayer).hasFile},
	{regexp.MustCompile(`^directory (\S+)$`), (*storyPlayer).hasDirectory},
	{regexp.MustCompile(`^link (\S+) to (\S+)$`), (*storyPlayer).hasLink},
	{regexp.MustCompile(`^hub wrote (\S+)$`), (*storyPlayer).hubWrote},
	{regexp.MustCompile(`^hub counts$`), (*storyPlayer).hubCounts},
}

func (p *storyPlayer) step(st *storyStep) error {
	for _, a := range acts {
		if m := a.heading.FindStringSubmatch(st.heading); m != nil {
			return a.act(p, st, m[1:])
		}
	}
	return errors.New("nobody knows how to play this: see schemas/conversations/README.md for what a heading can be")
}

func (p *storyPlayer) peer(name string) (*storyPeer, error) {
	peer := p.peers[name]
	if peer == nil {
		return nil, fmt.Errorf("%s is not there: an earlier step must say that it connects", name)
	}
	return peer, nil
}

// says sends what a peer says, frame by frame.
func (p *storyPlayer) says(st *storyStep, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	for _, v := range st.values() {
		filled, err := p.names.fill(v)
		if err != nil {
			return err
		}
		if err := p.deliver(func(ctx context.Context) error { return peer.end.send(ctx, filled) }, v.line()); err != nil {
			return err
		}
	}
	return nil
}

// saysOften sends the same many times over.
func (p *storyPlayer) saysOften(st *storyStep, m []string) error {
	often, err := strconv.Atoi(m[1])
	for i := 0; err == nil && i < often; i++ {
		err = p.says(st, m)
	}
	return err
}

// rawBytes are bytes in a verbatim line that no text can hold.
var rawBytes = regexp.MustCompile(`\\x[0-9a-f]{2}`)

// saysVerbatim sends each line as it stands.
func (p *storyPlayer) saysVerbatim(st *storyStep, m []string) error {
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

// deliver hands a frame to the other end, which takes it within a minute, and lets
// everything come to rest.
func (p *storyPlayer) deliver(send func(context.Context) error, frame string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := send(ctx); err != nil {
		return fmt.Errorf("sending %s: %w", frame, err)
	}
	synctest.Wait()
	return nil
}

// hears holds what came to a peer against what the story says.
func (p *storyPlayer) hears(st *storyStep, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	came := peer.take()
	for _, v := range came {
		if err := checkSchema(strings.TrimPrefix(m[0], "our "), v); err != nil {
			return fmt.Errorf("%w:\n%s", err, v.page())
		}
	}
	return p.judge(st, came, m[1] != "")
}

func (p *storyPlayer) leaves(_ *storyStep, m []string) error {
	return p.goes(m[0], link.Reason{Cause: link.Normal})
}

func (p *storyPlayer) isCutOff(_ *storyStep, m []string) error {
	return p.goes(m[0], link.Reason{Cause: link.PeerGone})
}

func (p *storyPlayer) goes(name string, r link.Reason) error {
	peer, err := p.peer(name)
	if err != nil {
		return err
	}
	synctest.Wait()
	if rest := peer.take(); len(rest) > 0 {
		return fmt.Errorf("before that %s has got what no step tells of:\n%s", name, pagesOf(rest))
	}
	peer.leave(r)
	if how := peer.conclusion(); strings.HasPrefix(name, "our ") {
		p.peers[name] = peer // how it ended is still to be told
	} else if how != nil {
		delete(p.peers, name)
	}
	return nil
}

func (p *storyPlayer) stopsReading(_ *storyStep, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	peer.stop()
	<-peer.read
	return nil
}

// isClosed holds how a connection ended against what the story says.
func (p *storyPlayer) isClosed(st *storyStep, m []string) error {
	peer, err := p.peer(m[0])
	if err != nil {
		return err
	}
	how := peer.conclusion()
	if how == nil {
		return errors.New("the connection is still open")
	}
	if rest := peer.take(); len(rest) > 0 {
		return fmt.Errorf("before that %s has got what no step tells of:\n%s", m[0], pagesOf(rest))
	}
	peer.leave(link.Reason{Cause: link.Normal})
	delete(p.peers, m[0])
	return p.judge(st, []*jsonValue{how}, false)
}

func (p *storyPlayer) waits(_ *storyStep, m []string) error {
	d, err := time.ParseDuration(m[0])
	if err != nil {
		return err
	}
	time.Sleep(d)
	return nil
}

// hubStops stops the hub; what runs has so long to end.
func (p *storyPlayer) hubStops(st *storyStep, m []string) error {
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
			p.t.Errorf("%s: stopping the hub: got %v, want no error", p.story.path, err)
		}
	}()
	return nil
}

// hubCounts holds counters of the hub against what the story says; others it does
// not look at.
func (p *storyPlayer) hubCounts(st *storyStep, _ []string) error {
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
	return p.judge(st, []*jsonValue{got}, false)
}
