package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The versions of the protocol, newest first. From sessionless on there are neither sessions nor
// an initialize: each request says its version and what the client can do.
const sessionless = "2026-07-28"

var versions = []string{sessionless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// latestLegacy is the version that initialize answers with if it does not know the one that
// the client named.
const latestLegacy = "2025-11-25"

// arrayElicitation is the first version in which a form may ask for several of a list.
const arrayElicitation = "2025-11-25"

// Headers of requests. The names of methods and tools are repeated in headers since
// 2026-07-28, so that proxies need not read bodies.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
)

// ThreadHeader is our own: the thread, escaped as a segment of a path, that the agent behind a
// token works on when it calls. An agent that works on several has a connection for each.
const ThreadHeader = "Dragoman-Thread"

// Keys of _meta and of extensions.
const (
	versionKey      = "io.modelcontextprotocol/protocolVersion"
	clientKey       = "io.modelcontextprotocol/clientInfo"
	capabilitiesKey = "io.modelcontextprotocol/clientCapabilities"
	serverKey       = "io.modelcontextprotocol/serverInfo"
	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
	tasksExtension  = "io.modelcontextprotocol/tasks"
	// callKey is our own: the id with which the agent that calls a tool shows the call in its
	// task. It tells to which of the agent's tasks the call belongs.
	callKey = "dragoman/call"
)

// maxCall is the maximum length of the value of callKey.
const maxCall = 512

// request is a request from a client on its way to its answer.
type request struct {
	jsonrpc.Message
	holder *holder
	http   *http.Request
	// modern says that the request is of version sessionless or later.
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
	// elicits says that the client can ask its user; tasks, that it has the tasks extension.
	elicits, tasks bool
}

// capabilities are what a client says that it can do, as far as the server uses it.
type capabilities struct {
	Elicitation *struct {
		Form json.RawMessage `json:"form"`
		URL  json.RawMessage `json:"url"`
	} `json:"elicitation"`
	Extensions map[string]json.RawMessage `json:"extensions"`
}

// elicits reports whether the client can show a form. A client that names no mode can.
func (c capabilities) elicits() bool {
	return c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// principal returns who sends the request.
func (q *request) principal() core.Principal { return q.holder.session.Identity().Principal }

// readRequest reads what a request says of itself in its headers and in _meta. Its errors have
// the status 400.
func readRequest(r *http.Request, h *holder, m jsonrpc.Message) (*request, *jsonrpc.Error) {
	q := &request{Message: m, holder: h, http: r, version: r.Header.Get(versionHeader), session: r.Header.Get(sessionHeader)}
	var in struct {
		Meta struct {
			Token        strictjson.Value `json:"progressToken"`
			Version      strictjson.Value `json:"io.modelcontextprotocol/protocolVersion"`
			Client       strictjson.Value `json:"io.modelcontextprotocol/clientInfo"`
			Capabilities strictjson.Value `json:"io.modelcontextprotocol/clientCapabilities"`
			Call         strictjson.Value `json:"dragoman/call"`
		} `json:"_meta"`
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
	if in.Meta.Call.Exists() {
		var ok bool
		if q.call, ok = in.Meta.Call.Text(); !ok || len(q.call) > maxCall {
			return nil, badParams("invalid _meta field %q: want a string of at most %d bytes", callKey, maxCall)
		}
	}
	named, _ := in.Meta.Version.Text()
	if bad := checkVersion(q.version, named); bad != nil {
		return nil, bad
	}
	q.modern = q.version >= sessionless
	q.elicits = strings.HasSuffix(q.session, elicitingSession)
	if !q.modern {
		return q, nil
	}
	var can capabilities
	switch {
	case in.Meta.Client.Exists() && in.Meta.Client.Kind() != strictjson.Object:
		return nil, badParams("invalid _meta field %q: want an object", clientKey)
	case in.Meta.Capabilities.Kind() != strictjson.Object:
		return nil, badParams("missing or invalid _meta field %q: want an object, {} for none", capabilitiesKey)
	}
	if err := in.Meta.Capabilities.Decode(&can); err != nil {
		return nil, badParams("invalid _meta field %q: %s", capabilitiesKey, err)
	}
	q.elicits = can.elicits()
	_, q.tasks = can.Extensions[tasksExtension]
	return q, checkHeaders(r.Header, m)
}

// checkVersion checks the version in the header and the one in _meta, each "" if missing.
func checkVersion(header, named string) *jsonrpc.Error {
	switch known := slices.Contains(versions, header); {
	case header != "" && !known && (header > sessionless || named != ""):
		data, _ := json.Marshal(map[string]any{"supported": versions, "requested": header}) // strings always encode
		return &jsonrpc.Error{Code: codeUnsupportedVersion, Message: "unsupported protocol version", Data: data}
	case header != "" && !known:
		return invalid("Bad Request: Unsupported protocol version (supported versions: %s)", strings.Join(versions, ","))
	case header < sessionless && named == "":
		return nil
	case header == "":
		return &jsonrpc.Error{Code: codeHeaderMismatch, Message: fmt.Sprintf("the %s header is required for requests carrying %q", versionHeader, versionKey)}
	case named == "":
		return badParams("missing or invalid _meta field %q", versionKey)
	case header != named:
		return &jsonrpc.Error{Code: codeHeaderMismatch, Message: fmt.Sprintf("the %s header %q does not match %q in _meta, %.40q", versionHeader, header, versionKey, named)}
	}
	return nil
}

// named has the member of params that the Mcp-Name header repeats, by method.
var named = map[string]string{methodCallTool: "name", methodGetTask: "taskId", methodUpdateTask: "taskId", methodCancelTask: "taskId"}

// checkHeaders checks the headers that repeat a part of the body.
func checkHeaders(h http.Header, m jsonrpc.Message) *jsonrpc.Error {
	mismatch := func(name, got, want string) *jsonrpc.Error {
		if got == want && got != "" {
			return nil
		}
		e := &jsonrpc.Error{Code: codeHeaderMismatch, Message: fmt.Sprintf("the %s header %.100q does not match %.100q in the body", name, got, want)}
		if got == "" {
			e.Message = "missing required " + name + " header"
		}
		return e
	}
	if bad := mismatch(methodHeader, h.Get(methodHeader), m.Method); bad != nil {
		return bad
	}
	if key := named[m.Method]; key != "" {
		name, _ := m.Params.Get(key).Text()
		return mismatch(nameHeader, plainHeader(h.Get(nameHeader)), name)
	}
	return nil
}

// plainHeader decodes a header value that was not safe to send as it is: =?base64?...?=.
func plainHeader(value string) string {
	if inner, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if inner, ok = strings.CutSuffix(inner, "?="); ok {
			if b, err := base64.StdEncoding.DecodeString(inner); err == nil {
				return string(b)
			}
		}
	}
	return value
}
