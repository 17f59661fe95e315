package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ThreadHeader is our own: the thread, escaped as a segment of a path, that the agent behind a
// token works on when it calls. An agent that works on several has a connection for each.
const ThreadHeader = "Dragoman-Thread"

// callKey is our own key of _meta: the id with which the agent that calls a tool shows the call in
// its task. It tells to which of the agent's tasks the call belongs.
const callKey = "dragoman/call"

// maxCall is the maximum length of the value of callKey.
const maxCall = 512

// request is a request from a client on its way to its answer.
type request struct {
	jsonrpc.Message
	holder *holder
	http   *http.Request
	// modern says that the version is wire.Modern or later.
	modern bool
	// version is the version of the protocol as far as the request says it.
	version string
	// session is the session header, which only clients of earlier versions send.
	session string
	// thread is what ThreadHeader says, or "".
	thread core.ThreadID
	// progress is the progress token as it was sent; nil if the client wants no progress.
	progress json.RawMessage
	// call is what callKey says, or "".
	call string
	// hops is what wire.MetaHops says, or 0.
	hops int
	// trace is the trace context of _meta, else of the headers.
	trace core.Trace
	// elicits says that the client can ask its user; tasks, that it has the tasks extension.
	elicits, tasks bool
}

// principal returns who sends the request.
func (q *request) principal() core.Principal { return q.holder.session.Identity().Principal }

// requestMeta is what the hub reads of the _meta of a request.
type requestMeta struct {
	Token        strictjson.Value `json:"progressToken"`
	Version      strictjson.Value `json:"io.modelcontextprotocol/protocolVersion"`
	Client       strictjson.Value `json:"io.modelcontextprotocol/clientInfo"`
	Capabilities strictjson.Value `json:"io.modelcontextprotocol/clientCapabilities"`
	Call         strictjson.Value `json:"dragoman/call"`
	Hops         strictjson.Value `json:"urn:dragoman:mcp:hops:1"`
	Traceparent  strictjson.Value `json:"traceparent"`
	Tracestate   strictjson.Value `json:"tracestate"`
}

// readRequest reads what a request says of itself in its headers and in _meta. Its errors have
// the status 400.
func readRequest(r *http.Request, h *holder, m jsonrpc.Message) (*request, *jsonrpc.Error) {
	q := &request{Message: m, holder: h, http: r, version: r.Header.Get(wire.HeaderVersion), session: r.Header.Get(wire.HeaderSession)}
	var in struct {
		Meta requestMeta `json:"_meta"`
	}
	if err := m.Params.Decode(&in); m.Params.Exists() && err != nil {
		return nil, badParams("params: %s", err)
	}
	switch t := in.Meta.Token; t.Kind() {
	case 0, strictjson.Null:
	case strictjson.String, strictjson.Number:
		q.progress = t.Clone()
	default:
		return nil, badParams("_meta.progressToken: want a string or a number, got %.20s", t.Raw())
	}
	thread, err := url.PathUnescape(r.Header.Get(ThreadHeader))
	if err != nil {
		return nil, badParams("invalid header %s: want the thread, escaped as a segment of a path", ThreadHeader)
	}
	q.thread = core.ThreadID(thread)
	if bad := q.readOwn(in.Meta); bad != nil {
		return nil, bad
	}
	if q.trace = core.TraceOf(r.Header); in.Meta.Traceparent.Exists() { // SEP-414
		q.trace = core.Trace{}
		q.trace.Parent, _ = in.Meta.Traceparent.Text()
		q.trace.State, _ = in.Meta.Tracestate.Text()
	}
	named, _ := in.Meta.Version.Text()
	if bad := checkVersion(q.version, named); bad != nil {
		return nil, bad
	}
	q.modern = q.version >= wire.Modern
	q.elicits = strings.HasSuffix(q.session, elicitingSession)
	if !q.modern {
		return q, nil
	}
	if bad := q.readClient(in.Meta); bad != nil {
		return nil, bad
	}
	return q, checkHeaders(r.Header, m)
}

// readOwn reads our own keys of _meta.
func (q *request) readOwn(meta requestMeta) *jsonrpc.Error {
	if meta.Call.Exists() {
		var ok bool
		if q.call, ok = meta.Call.Text(); !ok || len(q.call) > maxCall {
			return badParams("invalid _meta field %q: want a string of at most %d bytes", callKey, maxCall)
		}
	}
	if meta.Hops.Exists() && (meta.Hops.Decode(&q.hops) != nil || q.hops < 0) {
		return badParams("invalid _meta field %q: want a number of 0 or more, got %.20s", wire.MetaHops, meta.Hops.Raw())
	}
	return nil
}

// readClient reads what a request of a modern version says of its client.
func (q *request) readClient(meta requestMeta) *jsonrpc.Error {
	var can wire.Capabilities
	switch {
	case meta.Client.Exists() && meta.Client.Kind() != strictjson.Object:
		return badParams("invalid _meta field %q: want an object", wire.MetaClient)
	case meta.Capabilities.Kind() != strictjson.Object:
		return badParams("missing or invalid _meta field %q: want an object, {} for none", wire.MetaCapabilities)
	}
	if err := meta.Capabilities.Decode(&can); err != nil {
		return badParams("invalid _meta field %q: %s", wire.MetaCapabilities, err)
	}
	q.elicits = can.Elicits()
	q.tasks = can.HasTasks()
	return nil
}

// read reads the parameters of the request.
func (q *request) read(into any) *jsonrpc.Error {
	if !q.Params.Exists() {
		return invalid(`invalid request: missing required "params"`)
	}
	if err := q.Params.Decode(into); err != nil {
		return badParams("params: %s", err)
	}
	return nil
}

// checkVersion checks the version in the header and the one in _meta, each "" if missing.
func checkVersion(header, named string) *jsonrpc.Error {
	switch known := slices.Contains(wire.Versions, header); {
	case header != "" && !known && (header > wire.Modern || named != ""):
		data, _ := json.Marshal(map[string]any{"supported": wire.Versions, "requested": header}) // strings always encode
		return &jsonrpc.Error{Code: wire.CodeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
	case header != "" && !known:
		return invalid("Bad Request: Unsupported protocol version (supported versions: %s)", strings.Join(wire.Versions, ","))
	case header < wire.Modern && named == "":
		return nil
	case header == "":
		return &jsonrpc.Error{Code: wire.CodeHeaderMismatch, Message: fmt.Sprintf("the %s header is required for requests carrying %q", wire.HeaderVersion, wire.MetaVersion)}
	case named == "":
		return badParams("missing or invalid _meta field %q", wire.MetaVersion)
	case header != named:
		return &jsonrpc.Error{Code: wire.CodeHeaderMismatch, Message: fmt.Sprintf("the %s header %q does not match %q in _meta, %.40q", wire.HeaderVersion, header, wire.MetaVersion, named)}
	}
	return nil
}

// named has the member of params that the Mcp-Name header repeats, by method.
var named = map[string]string{wire.MethodCallTool: "name", wire.MethodGetTask: "taskId", wire.MethodUpdateTask: "taskId", wire.MethodCancelTask: "taskId"}

// checkHeaders checks the headers that repeat a part of the body.
func checkHeaders(h http.Header, m jsonrpc.Message) *jsonrpc.Error {
	mismatch := func(name, got, want string) *jsonrpc.Error {
		if got == want && got != "" {
			return nil
		}
		e := &jsonrpc.Error{Code: wire.CodeHeaderMismatch, Message: fmt.Sprintf("the %s header %.100q does not match %.100q in the body", name, got, want)}
		if got == "" {
			e.Message = "missing required " + name + " header"
		}
		return e
	}
	if bad := mismatch(wire.HeaderMethod, h.Get(wire.HeaderMethod), m.Method); bad != nil {
		return bad
	}
	if key := named[m.Method]; key != "" {
		name, _ := m.Params.Get(key).Text()
		return mismatch(wire.HeaderName, wire.DecodeHeader(h.Get(wire.HeaderName)), name)
	}
	return nil
}
