package a2a

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// destination is what a path names.
type destination struct {
	agent  core.AgentID // whose interface it is; "" for that of the hub
	tenant string       // the agent in the path of an operation, for the interface of the hub
	card   bool
	keys   bool // the public key that cards are signed with
	// operation is the method that an operation of the HTTP+JSON binding is in the other
	// one; "" for JSON-RPC. task and config are the ids in its path.
	operation    string
	task, config string
}

// The steps of paths.
const (
	stepREST   = "rest"
	stepTasks  = "tasks"
	stepPush   = "pushNotificationConfigs"
	stepSend   = "message:send"
	stepStream = "message:stream"
	stepCard   = "extendedAgentCard"
)

// route returns what a request is for, and whether anything is there. Ids may have any
// character, so steps are separated before they are unescaped.
func route(r *http.Request) (destination, bool) {
	path, below := strings.CutPrefix(r.URL.EscapedPath(), Path)
	if !below {
		return destination{card: true}, path == wire.CardPath && r.Method == http.MethodGet
	}
	steps, ok := stepsOf(path)
	if !ok {
		return destination{}, false
	}
	if n := len(steps); n >= 2 && "/"+steps[n-2]+"/"+steps[n-1] == wire.CardPath {
		at := slices.DeleteFunc(steps[:n-2], func(s string) bool { return s == "" }) // a base URL may end with a slash
		switch {
		case len(at) == 0:
			return destination{card: true}, r.Method == http.MethodGet
		case len(at) == 1:
			return destination{card: true, agent: core.AgentID(at[0])}, r.Method == http.MethodGet
		}
		return destination{}, false
	}
	if n := len(steps); n > 0 && steps[n-1] == "" {
		steps = steps[:n-1]
	}
	if r.Method == http.MethodGet && Path+path == keysPath {
		return destination{keys: true}, true
	}
	if to, ok := operation(r.Method, steps); ok { // before agents, one of which may have the name of a step
		return to, true
	}
	switch {
	case len(steps) == 0:
		return destination{}, r.Method == http.MethodPost
	case len(steps) == 1:
		return destination{agent: core.AgentID(steps[0])}, r.Method == http.MethodPost
	case steps[1] == stepREST:
		to, ok := operation(r.Method, steps[2:])
		if !ok && len(steps) > 3 {
			to, ok = operation(r.Method, steps[3:])
			to.tenant = steps[2]
		}
		to.agent = core.AgentID(steps[0])
		return to, ok
	}
	to, ok := operation(r.Method, steps[1:])
	to.tenant = steps[0]
	return to, ok
}

// stepsOf returns the unescaped steps of a path, which begins with a slash unless it is empty.
func stepsOf(path string) ([]string, bool) {
	if path == "" {
		return nil, true
	}
	if path[0] != '/' {
		return nil, false
	}
	steps := strings.Split(path[1:], "/")
	for i, s := range steps {
		plain, err := url.PathUnescape(s)
		if err != nil {
			return nil, false
		}
		steps[i] = plain
	}
	return steps, true
}

// operation returns the operation that a method and the steps of a path name (section 11.3).
// The prose has POST for subscribing and the definition of the service GET: both are served.
func operation(method string, steps []string) (destination, bool) {
	var to destination
	switch n := len(steps); {
	case n == 1 && steps[0] == stepSend && method == http.MethodPost:
		to.operation = wire.MethodSend
	case n == 1 && steps[0] == stepStream && method == http.MethodPost:
		to.operation = wire.MethodStream
	case n == 1 && steps[0] == stepCard && method == http.MethodGet:
		to.operation = wire.MethodExtendedCard
	case n == 0 || steps[0] != stepTasks:
	case n == 1 && method == http.MethodGet:
		to.operation = wire.MethodListTasks
	case n == 2:
		id, verb := steps[1], ""
		if i := strings.LastIndexByte(id, ':'); i >= 0 {
			id, verb = id[:i], id[i+1:]
		}
		to.task = id
		switch {
		case verb == "" && method == http.MethodGet:
			to.operation = wire.MethodGetTask
		case verb == "cancel" && method == http.MethodPost:
			to.operation = wire.MethodCancelTask
		case verb == "subscribe" && (method == http.MethodPost || method == http.MethodGet):
			to.operation = wire.MethodSubscribe
		}
	case n == 3 && steps[2] == stepPush:
		to.task = steps[1]
		switch method {
		case http.MethodPost:
			to.operation = wire.MethodCreatePush
		case http.MethodGet:
			to.operation = wire.MethodListPush
		}
	case n == 4 && steps[2] == stepPush:
		to.task, to.config = steps[1], steps[3]
		switch method {
		case http.MethodGet:
			to.operation = wire.MethodGetPush
		case http.MethodDelete:
			to.operation = wire.MethodDeletePush
		}
	}
	return to, to.operation != ""
}
