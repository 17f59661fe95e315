package pack

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// request is a request of the hub.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
	// call is the call of a tool that it belongs to, or nil.
	call *call
	// quiet says that a cancel of it is not told to the server.
	quiet bool
	// session is the one of a legacy server over HTTP that it belongs to; "" for the present one.
	session string
}

// transport carries the messages of one connection to a server. Its methods may be called
// concurrently.
type transport interface {
	// call sends a request and waits for its response, which may be an error of the server.
	// When ctx ends it cancels the request and returns the cause of ctx. Any other error is a
	// Fault for the caller of a tool.
	call(ctx context.Context, r request) (jsonrpc.Message, error)
	// send sends a notification or a response.
	send(ctx context.Context, message []byte) error
	// established tells that the handshake is over: later requests are of the era of the server.
	established()
	// listen receives notifications that belong to no request, until their stream ends. A
	// transport without a stream of its own for them returns errUnsolicited, one whose server
	// has none errNoStream.
	listen(ctx context.Context) error
	// mayBeSilent reports whether a server may leave an unknown request without an answer.
	mayBeSilent() bool
	// lost is closed when the connection is lost; reason says why.
	lost() <-chan struct{}
	reason() error
	// close ends the connection, and waits until nothing of it runs.
	close()
}

// server is one connection to an MCP server: what the hub and the server want of each other
// beyond a single request.
type server struct {
	opts Options
	log  *slog.Logger
	conn transport
	// agreed is the era that the handshake has found; none before.
	agreed atomic.Pointer[era]
	// unprobed says that the handshake begins with initialize.
	unprobed bool
	ids      atomic.Uint64
	// goroutines are those of requests of the server and of the stream of changes.
	goroutines sync.WaitGroup
	// running bounds requests of the server that are not answered.
	running chan struct{}
	// changed holds a token when the list of tools has changed.
	changed chan struct{}
	// told are the kinds of trouble that were logged.
	told sync.Map
	// preamble says what the server wrote before its first message, as a part of an error.
	preamble atomic.Value
	// echoes says that the server sent a request that only clients send, such as that of the hub.
	echoes atomic.Bool

	ctx    context.Context //nolint:containedctx // ends with the connection: for what the server asks
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	calls map[string]*call              // by progress token
	asks  map[string]context.CancelFunc // requests of the server, by id
}

// maxRequests is how many requests of a server may wait for an answer.
const maxRequests = 64

func newServer(ctx context.Context, o Options) *server {
	s := &server{
		opts: o, log: o.Log, running: make(chan struct{}, maxRequests), changed: make(chan struct{}, 1),
		calls: map[string]*call{}, asks: map[string]context.CancelFunc{},
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	return s
}

// close ends the connection and everything that belongs to it.
func (s *server) close(why error) {
	s.cancel(why)
	s.conn.close()
	s.goroutines.Wait()
}

func (s *server) newID() json.RawMessage { return jsonrpc.NumberID(s.ids.Add(1)) }

// count adds one to a counter of the packs.
func (s *server) count(name string) { s.opts.Count("mcp.pack." + name) }

// trouble counts what is wrong with the server, and logs the first of its kind.
func (s *server) trouble(name, message string, detail ...any) {
	s.count(name)
	level := slog.LevelWarn
	if _, before := s.told.LoadOrStore(name, true); before {
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, message, detail...)
}

// receive takes a request or a notification of the server. from is the call on whose stream
// it came, or nil if that is unknown. It does not wait.
func (s *server) receive(m jsonrpc.Message, from *call) {
	if m.Kind() == jsonrpc.Request {
		s.answer(m, from)
		return
	}
	switch m.Method {
	case wire.NoteProgress:
		if c := s.callOf(m.Params.Get("progressToken")); c != nil {
			c.progress(m.Params)
		} else {
			s.count("ignored.progress")
		}
	case wire.NoteToolsChanged, wire.NoteAcknowledged: // what changed before a subscription was not told
		s.toolsChanged()
	case wire.NoteCancelled:
		s.mu.Lock()
		stop := s.asks[string(m.Params.Get("requestId").Raw())]
		s.mu.Unlock()
		if stop != nil {
			stop()
		}
	case wire.NoteLogged:
		s.log.Debug("the MCP server logs", "message", fmt.Sprintf("%.1000s", m.Params.Get("data").Raw()))
	case wire.NoteElicitDone, wire.NoteTask:
	default:
		s.count("ignored.notification")
	}
}

// toolsChanged has the list of tools read again.
func (s *server) toolsChanged() {
	select {
	case s.changed <- struct{}{}:
	default: // it will be
	}
}

// enter makes progress with the token reach the call, until leave is called.
func (s *server) enter(token json.RawMessage, c *call) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[string(token)] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, string(token))
	}
}

func (s *server) callOf(token strictjson.Value) *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[string(token.Raw())]
}

// only returns the call that runs, if it is the only one.
func (s *server) only() *call {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.calls) != 1 {
		return nil
	}
	for _, c := range s.calls {
		return c
	}
	return nil
}

// answer answers a request of the server, in a goroutine of its own: it may wait for people,
// and for room to write.
func (s *server) answer(m jsonrpc.Message, from *call) {
	select {
	case s.running <- struct{}{}:
	default:
		s.trouble("refused.request", "too many requests of the MCP server wait for an answer", "method", m.Method)
		return
	}
	if from == nil {
		from = s.only()
	}
	parent := s.ctx
	if from != nil {
		parent = from.ctx
	}
	ctx, cancel := context.WithCancel(parent)
	key := string(m.ID)
	s.mu.Lock()
	s.asks[key] = cancel
	s.mu.Unlock()
	s.goroutines.Go(func() {
		defer func() { <-s.running }()
		defer cancel()
		response := s.reply(ctx, m, from)
		s.mu.Lock()
		delete(s.asks, key) // before the server has the response, and may use the id again
		s.mu.Unlock()
		s.respond(response)
	})
}

// respond sends a response, which may outlive the call that it is about.
func (s *server) respond(response []byte) {
	ctx, cancel := context.WithTimeout(s.ctx, sendTime)
	defer cancel()
	if err := s.conn.send(ctx, response); err != nil {
		s.log.Debug("a response did not reach the MCP server", "error", err)
	}
}

// sendTime is how long a notification or a response may take.
const sendTime = 5 * time.Second

// reply returns the response to a request of the server.
func (s *server) reply(ctx context.Context, m jsonrpc.Message, from *call) []byte {
	switch m.Method {
	case wire.MethodPing:
		return jsonrpc.AppendResult(nil, m.ID, json.RawMessage("{}"))
	case wire.MethodElicit:
	default:
		if m.Method == wire.MethodDiscover || m.Method == wire.MethodInitialize {
			s.echoes.Store(true)
		}
		s.count("refused.method")
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%.100s: the hub declared elicitation alone", m.Method))
	}
	if from == nil {
		s.trouble("elicitation.unknown_call", "a question of the MCP server was declined: several calls run, and the server does not say for which it asks; with concurrent: 1 it is always known")
		return jsonrpc.AppendResult(nil, m.ID, strictjson.Encode(question.Answer{Action: question.Decline}))
	}
	got, err := from.elicit(ctx, "", m.Params)
	if err != nil {
		s.trouble("refused.elicitation", "a question of the MCP server cannot be asked", "error", err)
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err))
	}
	return jsonrpc.AppendResult(nil, m.ID, strictjson.Encode(got))
}
