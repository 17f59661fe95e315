package bridge

import (
	"encoding/json"
	"strconv"
	"sync"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxSessions is how many sessions are resumed at a new connection, the latest ones.
const maxSessions = 256

// calls are the open requests in both directions, and what a new connection needs to know of
// the ones before it. An id is its JSON text.
type calls struct {
	mu    sync.Mutex
	open  map[string]call     // requests of the editor
	asked map[string]struct{} // requests of the hub
	own   map[string]struct{} // requests that were repeated, whose answers the editor does not get
	count int                 // of those

	greeting []byte // the initialize that the hub accepted
	sessions []session

	ending   bool
	closed   chan struct{} // once stdin has ended
	answered chan struct{} // once nothing is open after that
}

// call is an open request.
type call struct {
	method string
	line   []byte  // of an initialize
	opens  session // what it opens or closes, if it succeeds
}

// session is a session of the editor, as JSON texts.
type session struct{ id, cwd string }

func newCalls() *calls {
	return &calls{
		open: map[string]call{}, asked: map[string]struct{}{}, own: map[string]struct{}{},
		closed: make(chan struct{}), answered: make(chan struct{}),
	}
}

// begin adds a request of the editor.
func (c *calls) begin(m jsonrpc.Message, line []byte) {
	now := call{method: m.Method}
	switch m.Method {
	case "initialize":
		now.line = line
	case "session/new", "session/load", "session/resume", "session/close":
		now.opens = session{string(m.Params.Get("sessionId").Clone()), string(m.Params.Get("cwd").Clone())}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.open[string(m.ID)]; !twice {
		c.open[string(m.ID)] = now
	}
}

// take removes a request of the editor, and reports whether it was open.
func (c *calls) take(id json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.open[string(id)]
	c.remove(string(id))
	return open
}

// remove removes a request. Callers hold mu.
func (c *calls) remove(id string) {
	delete(c.open, id)
	c.finish()
}

// finish tells whoever waits for the last answer. Callers hold mu.
func (c *calls) finish() {
	if c.ending && len(c.open) == 0 {
		select {
		case <-c.answered:
		default:
			close(c.answered)
		}
	}
}

// close says that the editor sends nothing more.
func (c *calls) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	close(c.closed)
	c.finish()
}

// settle removes the request that a response of the hub answers, and remembers what it opened.
func (c *calls) settle(m jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, open := c.open[string(m.ID)]
	if !open {
		return
	}
	if m.Err == nil {
		switch opens := asked.opens; asked.method {
		case "initialize":
			c.greeting = asked.line
		case "session/new":
			c.remember(session{string(m.Result.Get("sessionId").Clone()), opens.cwd})
		case "session/load", "session/resume":
			c.remember(opens)
		case "session/close":
			c.forget(opens.id)
		}
	}
	c.remove(string(m.ID))
}

// remember adds a session. Callers hold mu.
func (c *calls) remember(s session) {
	c.forget(s.id)
	c.sessions = append(c.sessions[max(0, len(c.sessions)+1-maxSessions):], s)
}

// forget removes a session. Callers hold mu.
func (c *calls) forget(id string) {
	for i, s := range c.sessions {
		if s.id == id {
			c.sessions = append(c.sessions[:i:i], c.sessions[i+1:]...)
			return
		}
	}
}

// ask adds a request of the hub.
func (c *calls) ask(id json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[string(id)] = struct{}{}
}

// settleAsked removes a request of the hub, and reports whether it was open.
func (c *calls) settleAsked(id json.RawMessage) bool { return c.settleOne(c.asked, id) }

// settleOwn removes a repeated request, and reports whether it was open.
func (c *calls) settleOwn(id json.RawMessage) bool { return c.settleOne(c.own, id) }

func (c *calls) settleOne(of map[string]struct{}, id json.RawMessage) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := of[string(id)]
	delete(of, string(id))
	return open
}

// lose forgets what was open when the connection was lost, and returns it.
func (c *calls) lose() (open, asked []json.RawMessage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.open {
		open = append(open, json.RawMessage(id))
	}
	for id := range c.asked {
		asked = append(asked, json.RawMessage(id))
	}
	clear(c.open)
	clear(c.asked)
	clear(c.own)
	c.finish()
	return open, asked
}

// repeated returns what a new connection needs first: initialize, and a session/resume for
// each session; nothing before the first initialize was accepted.
func (c *calls) repeated() (lines [][]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.greeting == nil {
		return nil
	}
	greeting := strictjson.ParseValid(c.greeting)
	lines = append(lines, jsonrpc.AppendRequest(nil, c.ownID(), "initialize", greeting.Get("params").Raw()))
	for _, s := range c.sessions {
		params := `{"sessionId":` + s.id + `,"cwd":` + s.cwd + `,"mcpServers":[]}`
		lines = append(lines, jsonrpc.AppendRequest(nil, c.ownID(), "session/resume", []byte(params)))
	}
	return lines
}

// ownID returns an id that no editor uses. Callers hold mu.
func (c *calls) ownID() json.RawMessage {
	c.count++
	id := json.RawMessage(strconv.Quote("dragoman editor " + strconv.Itoa(c.count)))
	c.own[string(id)] = struct{}{}
	return id
}
