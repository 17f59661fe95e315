package a2a

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// method is an operation of the protocol, in every binding.
type method struct {
	name string // in JSON-RPC and gRPC
	// rest is where it is in the HTTP+JSON binding (section 11.3), with the members of the request
	// that are in the path, and query those in the query.
	rest  []string
	query []string
	// body says that the request has to have a body there.
	body bool
	// run performs it. It returns its result, or nil if it has answered with a stream.
	run operation
}

type operation = func(*call, strictjson.Value) (json.RawMessage, error)

const pushPath = "/tasks/{taskId}/pushNotificationConfigs"

// methods are all of them. The prose has POST for subscribing and the definition of the service
// GET: both are served.
var methods = []method{
	{name: wire.MethodSend, rest: []string{"POST /message:send"}, body: true, run: (*call).send},
	{name: wire.MethodStream, rest: []string{"POST /message:stream"}, body: true, run: (*call).sendStreaming},
	{name: wire.MethodGetTask, rest: []string{"GET /tasks/{id}"}, query: []string{"historyLength"}, run: (*call).getTask},
	{name: wire.MethodListTasks, rest: []string{"GET /tasks"}, run: (*call).listTasks, query: []string{
		"contextId", "status", "pageSize", "pageToken", "historyLength", "statusTimestampAfter", "includeArtifacts",
	}},
	{name: wire.MethodCancelTask, rest: []string{"POST /tasks/{id}:cancel"}, run: (*call).cancelTask},
	{name: wire.MethodSubscribe, rest: []string{"POST /tasks/{id}:subscribe", "GET /tasks/{id}:subscribe"}, run: (*call).subscribe},
	{name: wire.MethodCreatePush, rest: []string{"POST " + pushPath}, body: true, run: (*call).createPush},
	{name: wire.MethodListPush, rest: []string{"GET " + pushPath}, query: []string{"pageSize", "pageToken"}, run: (*call).listPush},
	{name: wire.MethodGetPush, rest: []string{"GET " + pushPath + "/{id}"}, run: (*call).getPush},
	{name: wire.MethodDeletePush, rest: []string{"DELETE " + pushPath + "/{id}"}, run: (*call).deletePush},
	{name: wire.MethodExtendedCard, rest: []string{"GET /extendedAgentCard"}, run: (*call).extendedCard},
}

// methodNamed returns the method of a name, or the error for an unknown one.
func methodNamed(name string) (operation, error) {
	names := make([]string, len(methods))
	for i, m := range methods {
		if m.name == name {
			return m.run, nil
		}
		names[i] = m.name
	}
	text := "unknown method " + strconv.Quote(shorten(name))
	if now := oldMethods[name]; now != "" {
		text += ": in A2A 1.0 it is " + now
	} else if near := suggest.Nearest(name, names); near != "" {
		text += "; did you mean " + near + "?"
	}
	return nil, wire.MethodNotFound(text)
}

// oldMethods are methods of A2A 0.3 by their names in 1.0.
var oldMethods = map[string]string{
	"message/send": "SendMessage", "message/stream": "SendStreamingMessage",
	"tasks/get": "GetTask", "tasks/cancel": "CancelTask", "tasks/resubscribe": "SubscribeToTask",
}

// methodAt returns the method of the HTTP+JSON binding that a verb and the steps of a path name.
func methodAt(verb string, steps []string) (to destination, ok bool) {
	for i := range methods {
		for _, at := range methods[i].rest {
			of, path, _ := strings.Cut(at, " /")
			if members, ok := match(strings.Split(path, "/"), steps); ok && of == verb {
				return destination{method: &methods[i], members: members}, true
			}
		}
	}
	return to, false
}

// match returns the members of a request that steps have where a pattern names them.
func match(pattern, steps []string) (members []strictjson.Field, ok bool) {
	if len(pattern) != len(steps) {
		return nil, false
	}
	for i, want := range pattern {
		if want[0] != '{' {
			if steps[i] != want {
				return nil, false
			}
			continue
		}
		name, action, _ := strings.Cut(want[1:], "}")
		id, ok := strings.CutSuffix(steps[i], action)
		if !ok || action == "" && len(pattern) == 2 && strings.Contains(id, ":") { // of an action that there is not
			return nil, false
		}
		members = append(members, strictjson.Field{Key: name, Value: strictjson.AppendString(nil, id)})
	}
	return members, true
}

// params returns a request of the HTTP+JSON binding in the form that the others have: from its
// body or its query, with the members in its path.
func (c *call) params(m *method, inPath []strictjson.Field) (v strictjson.Value, err error) {
	v = noParams
	switch {
	case c.r.Method == http.MethodPost:
		body, err := c.body()
		if err != nil {
			return v, err
		}
		if m.body || len(body) > 0 {
			if v, err = wire.Parse(body); err != nil {
				return v, wire.ParseError(err.Error())
			}
		}
	case m.query != nil:
		if v, err = fromQuery(c.r.URL.Query(), m.query); err != nil {
			return v, err
		}
	}
	if len(inPath) == 0 || v.Kind() != strictjson.Object {
		return v, nil
	}
	return wire.Parse(v.Set(inPath...))
}

// noParams are the params of a request without any.
var noParams = strictjson.ParseValid([]byte("{}"))

// fromQuery returns a request with members of the query. Numbers and booleans are taken as such
// where a member is one.
func fromQuery(query url.Values, names []string) (strictjson.Value, error) {
	members := map[string]any{}
	for _, name := range names {
		value := query.Get(name)
		switch name {
		case "pageSize", "historyLength":
			if n, err := strconv.Atoi(value); err == nil {
				members[name] = n
				continue
			}
		case "includeArtifacts":
			if on, err := strconv.ParseBool(value); err == nil {
				members[name] = on
				continue
			}
		}
		if value != "" {
			members[name] = value // the request says what it wants instead
		}
	}
	return wire.Parse(strictjson.Encode(members))
}
