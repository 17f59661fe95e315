package a2a

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// destination is what a path names.
type destination struct {
	agent  core.AgentID // whose interface it is; "" for that of the hub
	tenant string       // the agent in the path of an operation, for the interface of the hub
	card   bool
	keys   bool // the public key that cards are signed with
	// method is that of the HTTP+JSON binding, and members those of the request in its path; nil for
	// JSON-RPC.
	method  *method
	members []strictjson.Field
}

// stepREST is the step of a path before the HTTP+JSON binding of an agent.
const stepREST = "rest"

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
		to, is := cardBelow(steps[:n-2])
		return to, is && r.Method == http.MethodGet
	}
	if n := len(steps); n > 0 && steps[n-1] == "" {
		steps = steps[:n-1]
	}
	if r.Method == http.MethodGet && Path+path == keysPath {
		return destination{keys: true}, true
	}
	if to, ok := methodAt(r.Method, steps); ok { // before agents, one of which may have the name of a step
		return to, true
	}
	return interfaceOf(r.Method, steps)
}

// cardBelow returns whose card is below the steps of a base URL, which may end with a slash.
func cardBelow(steps []string) (destination, bool) {
	switch at := slices.DeleteFunc(steps, func(s string) bool { return s == "" }); len(at) {
	case 0:
		return destination{card: true}, true
	case 1:
		return destination{card: true, agent: core.AgentID(at[0])}, true
	}
	return destination{}, false
}

// interfaceOf returns the interface that the steps of a path begin with: JSON-RPC of the hub or of an agent, or an
// operation of the other binding, of an agent or of a tenant.
func interfaceOf(method string, steps []string) (destination, bool) {
	switch {
	case len(steps) == 0:
		return destination{}, method == http.MethodPost
	case len(steps) == 1:
		return destination{agent: core.AgentID(steps[0])}, method == http.MethodPost
	case steps[1] == stepREST:
		to, ok := methodAt(method, steps[2:])
		if !ok && len(steps) > 3 {
			to, ok = methodAt(method, steps[3:])
			to.tenant = steps[2]
		}
		to.agent = core.AgentID(steps[0])
		return to, ok
	}
	to, ok := methodAt(method, steps[1:])
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
