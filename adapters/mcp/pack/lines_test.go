package pack_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// script is a server whose every line the test writes.
type script struct {
	t   *testing.T
	end *coretest.End[[]byte, []byte]
}

// message is a line that the hub wrote.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Cursor    string          `json:"cursor"`
		RequestID json.RawMessage `json:"requestId"`
		Reason    string          `json:"reason"`
		Responses json.RawMessage `json:"inputResponses"`
		State     json.RawMessage `json:"requestState"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
			Token   int    `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *script) read() (m message) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	line, err := s.end.Receive(ctx)
	if err != nil {
		s.t.Fatalf("reading what the hub writes: got %v, want a line", err)
	}
	if err := json.Unmarshal(line, &m); err != nil {
		s.t.Fatalf("got %s, want JSON", line)
	}
	return m
}

// wants reads a message with the method.
func (s *script) wants(method string) message {
	s.t.Helper()
	m := s.read()
	if m.Method != method {
		s.t.Fatalf("got %+v, want %s", m, method)
	}
	return m
}

func (s *script) write(format string, args ...any) {
	s.t.Helper()
	if err := s.end.Send(context.Background(), fmt.Appendf(nil, format, args...)); err != nil {
		s.t.Errorf("writing: got %v, want no error", err)
	}
}

func (s *script) answer(m message, result string) {
	s.t.Helper()
	s.write(`{"result":%s,"jsonrpc":"2.0","id":%s}`, result, m.ID)
}

const oneTool = `{"tools":[{"name":"x","inputSchema":{"type":"object"}},{"name":"y","inputSchema":{"type":"object"}}]}`

// begin answers the handshake as a legacy server, and the list of tools.
func (s *script) begin(tools string) {
	s.t.Helper()
	m := s.wants("server/discover")
	s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
	s.answer(s.wants("initialize"), `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"1"}}`)
	s.wants("notifications/initialized")
	s.answer(s.wants("tools/list"), tools)
}

// scripted runs a test under a fake clock with a pack of a scripted server. begin is the
// beginning of each run.
func scripted(t *testing.T, opts pack.Options, begin func(*script), test func(g *testHub, s *script, r *running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g := newHub(t)
		s := &script{t: t}
		opts.Dial = func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
			hubEnd, serverEnd := coretest.Pipe[[]byte, []byte](0)
			s.end = serverEnd
			go begin(s)
			return limited{hubEnd}, nil
		}
		r := g.run(g.pack(opts))
		test(g, s, r)
		r.stop()
		_ = r.wait()
		_ = s.end.Close(link.Reason{Cause: link.Normal})
	})
}

// limited is the hub's end of a pipe that carries lines of at most 100,000 bytes.
type limited struct{ *coretest.End[[]byte, []byte] }

func (c limited) Receive(ctx context.Context) ([]byte, error) {
	line, err := c.End.Receive(ctx)
	if n := len(line); n > 100_000 {
		return nil, &link.Reject{Cause: link.TooLarge, Size: n, Limit: 100_000, Head: string(line[:256]), Tail: string(line[n-256:])}
	}
	return line, err
}

func legacy(s *script) { s.begin(oneTool) }

// start calls a tool and returns the result later.
func (g *testHub) start(name, input string) <-chan *tool.Result {
	out := make(chan *tool.Result, 1)
	go func() { out <- g.call(name, input) }()
	return out
}

func TestTheHandshakeNamesTheHubAndDeclaresElicitationAlone(t *testing.T) {
	var discover, initialize json.RawMessage
	begin := func(s *script) {
		line, _ := s.end.Receive(context.Background())
		discover = line
		s.write(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
		initialize, _ = s.end.Receive(context.Background())
		s.write(`{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}}}}`)
		s.wants("notifications/initialized")
		s.answer(s.wants("tools/list"), oneTool)
	}
	scripted(t, pack.Options{}, begin, func(*testHub, *script, *running) {})
	want := `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"dragoman","version":"1.2.3"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}}}}}}`
	if string(discover) != want {
		t.Errorf("got  %s\nwant %s", discover, want)
	}
	want = `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}}},` +
		`"clientInfo":{"name":"dragoman","version":"1.2.3"}}}`
	if string(initialize) != want {
		t.Errorf("got  %s\nwant %s", initialize, want)
	}
}

func TestAServerThatIsSilentToTheProbeIsLegacy(t *testing.T) {
	begin := func(s *script) {
		s.wants("server/discover")
		s.answer(s.wants("initialize"), `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}}}`)
		s.wants("notifications/initialized")
		s.answer(s.wants("tools/list"), oneTool)
	}
	scripted(t, pack.Options{}, begin, func(g *testHub, _ *script, _ *running) {
		if got := g.tools(); got != "p.x p.y" {
			t.Errorf("got the tools %q, want p.x and p.y", got)
		}
	})
}

func TestACancelInTheHandshakeIsIgnored(t *testing.T) {
	begin := func(s *script) {
		s.wants("server/discover")
		m := s.wants("initialize")
		s.answer(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)
		s.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, m.ID)
		s.wants("notifications/initialized")
		s.answer(s.wants("tools/list"), oneTool)
	}
	scripted(t, pack.Options{}, begin, func(*testHub, *script, *running) {})
}

func TestALateAnswerToTheProbeMakesTheServerModern(t *testing.T) {
	begin := func(s *script) {
		probe := s.wants("server/discover")
		s.wants("initialize")
		s.answer(probe, `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
		list := s.wants("tools/list")
		if list.Params.Meta.Version != "2026-07-28" {
			s.t.Errorf("got the version %q in the next request, want 2026-07-28", list.Params.Meta.Version)
		}
		s.answer(list, oneTool)
	}
	scripted(t, pack.Options{}, begin, func(*testHub, *script, *running) {})
}

func TestAServerThatCannotBeUsedEndsTheRunWithTheReason(t *testing.T) {
	initialize := func(result string) func(*script) {
		return func(s *script) {
			m := s.wants("server/discover")
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}}`, m.ID)
			s.answer(s.wants("initialize"), result)
		}
	}
	listing := func(list string) func(*script) {
		return func(s *script) {
			initialize(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}`)(s)
			s.wants("notifications/initialized")
			s.answer(s.wants("tools/list"), list)
		}
	}
	for name, c := range map[string]struct {
		begin func(*script)
		want  string
	}{
		"a version of the future": {initialize(`{"protocolVersion":"2030-01-01"}`), `speaks version "2030-01-01"`},
		"no version":              {initialize(`null`), `speaks version ""`},
		"no list":                 {listing(`{}`), "list of tools is missing"},
		"a list of no tools":      {listing(`{"tools":"none"}`), `list of tools is "none"`},
		"a list without an end": {func(s *script) {
			listing(`{"tools":[],"nextCursor":"a"}`)(s)
			s.answer(s.wants("tools/list"), `{"tools":[],"nextCursor":"a"}`)
		}, "does not end"},
		"an end in the handshake": {func(s *script) {
			s.read() // server/discover, or initialize of a second process
			_ = s.end.Close(link.Reason{Cause: link.PeerGone})
		}, "pack p has ended"},
		"silence": {func(s *script) { s.wants("server/discover"); s.wants("initialize") }, "longer than 2m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newHub(t)
				p := g.pack(pack.Options{Dial: dial(func(end *coretest.End[[]byte, []byte]) { go c.begin(&script{t, end}) })})
				err := p.Run(t.Context(), g.session, func() { t.Error("got it ready, want an error") })
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		})
	}
}

func TestToolsThatCannotBeOfferedAreLeftOutAndTheOthersKept(t *testing.T) {
	begin := func(s *script) {
		s.begin(`{"tools":[null,{"name":"a b"},{"name":"` + strings.Repeat("n", 127) + `"},{"name":"task","execution":{"taskSupport":"required"}},
			{"name":"text","inputSchema":"none"},{"name":"strings","inputSchema":{"type":"string"}},{"name":"ref","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/a"}}}},
			{"name":"one","title":"One","execution":{"taskSupport":"optional"}},{"name":"one","description":"again"}],"nextCursor":"2"}`)
		m := s.wants("tools/list")
		if m.Params.Cursor != "2" {
			s.t.Errorf("got the cursor %q, want 2", m.Params.Cursor)
		}
		s.answer(m, `{"tools":[{"name":"two","inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}},
			{"name":"one"},{"name":"three","inputSchema":{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object"}}]}`)
	}
	scripted(t, pack.Options{}, begin, func(g *testHub, _ *script, _ *running) {
		all := g.caller.Tools()[len(g.hub.Tools()):]
		if got := g.tools(); got != "p.one p.ref p.three p.two" {
			t.Fatalf("got the tools %q, want one, ref, three and two", got)
		}
		if all[0].Description != "One" || all[0].Pack != "p" {
			t.Errorf("got %+v, want the title of the first as its description", all[0])
		}
		if want := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`; string(all[3].InputSchema) != want {
			t.Errorf("got the schema %s, want it as it was sent", all[3].InputSchema)
		}
		if got := g.counts.of("refused.tool"); got != 8 {
			t.Errorf("got %d tools counted as refused, want 8", got)
		}
	})
}

func TestTheEndOfTheServerFailsItsCallsAtOnce(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, r *running) {
		first, second := g.start("x", `{}`), g.start("y", `{}`)
		s.wants("tools/call")
		s.wants("tools/call")
		_ = s.end.Close(link.Reason{Cause: link.PeerGone, Text: "the process ended with exit status 1"})
		wantFault(t, "x", <-first, core.CodeUnreachable, "pack p")
		wantFault(t, "y", <-second, core.CodeUnreachable, "pack p")
		if err := r.wait(); err == nil || !strings.Contains(err.Error(), "pack p has ended") {
			t.Errorf("got the end %v, want that the server has ended", err)
		}
		g.wantFault("x", `{}`, core.CodeUnreachable, "down")
	})
}

func TestARunEndsAtOnceWhileTheChangedToolsAreListed(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, r *running) {
		s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		s.wants("tools/list") // it is never answered
		began := time.Now()
		r.stop()
		if err := r.wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("got the end %v, want that it was stopped", err)
		}
		if took := time.Since(began); took > sendTime {
			t.Errorf("got the end after %s, want it at once", took)
		}
	})
}

// sendTime is how long the hub tries to tell a server that a request is cancelled.
const sendTime = 5 * time.Second

func TestACallThatItsCallerWithdrawsIsCancelled(t *testing.T) {
	scripted(t, pack.Options{Calls: 1}, legacy, func(g *testHub, s *script, _ *running) {
		ctx, cancel := context.WithCancel(g.t.Context())
		go func() { _, _ = g.caller.Call(ctx, "p.x", nil) }()
		m := s.wants("tools/call")
		waiting, giveUp := context.WithCancel(g.t.Context())
		go func() { _, _ = g.caller.Call(waiting, "p.x", nil) }() // it never begins
		synctest.Wait()
		giveUp()
		synctest.Wait()
		cancel()
		if got := s.wants("notifications/cancelled"); string(got.Params.RequestID) != string(m.ID) {
			t.Errorf("got %+v, want the call cancelled", got)
		}
		s.answer(m, `{"content":[]}`) // a late answer
		other := g.start("y", `{}`)
		next := s.wants("tools/call")
		if next.Params.Name != "y" {
			t.Errorf("got a call of %s, want the one of y", next.Params.Name)
		}
		s.answer(next, `{"content":[]}`)
		<-other
	})
}

func TestRequestsOfTheServerAreAnswered(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(_ *testHub, s *script, _ *running) {
		s.write(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
		if m := s.read(); string(m.ID) != `"p"` || string(m.Result) != `{}` {
			t.Errorf("got %+v, want an empty result", m)
		}
		s.write(`{"jsonrpc":"2.0","id":0,"method":"roots/list"}`)
		if m := s.read(); string(m.ID) != `0` || !strings.Contains(string(m.Error), "-32601") {
			t.Errorf("got %+v, want the method refused", m)
		}
		s.write(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Who?"}}`)
		if m := s.read(); string(m.ID) != `1` || string(m.Result) != `{"action":"decline"}` {
			t.Errorf("got %+v, want a question without a call declined", m)
		}
	})
}
