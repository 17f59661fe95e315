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
		to, is := cardBelow(steps[:n-2])
		return to, is && r.Method == http.MethodGet
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
		to, ok := operation(method, steps[2:])
		if !ok && len(steps) > 3 {
			to, ok = operation(method, steps[3:])
			to.tenant = steps[2]
		}
		to.agent = core.AgentID(steps[0])
		return to, ok
	}
	to, ok := operation(method, steps[1:])
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

// An idStep stands for an id in the steps of an operation.
const idStep = "{id}"

// paths are the operations of the HTTP+JSON binding (section 11.3). The prose has POST for subscribing and
// the definition of the service GET: both are served.
var paths = []struct {
	method    string
	steps     []string
	operation string
}{
	{http.MethodPost, []string{stepSend}, wire.MethodSend},
	{http.MethodPost, []string{stepStream}, wire.MethodStream},
	{http.MethodGet, []string{stepCard}, wire.MethodExtendedCard},
	{http.MethodGet, []string{stepTasks}, wire.MethodListTasks},
	{http.MethodGet, []string{stepTasks, idStep}, wire.MethodGetTask},
	{http.MethodPost, []string{stepTasks, idStep + ":cancel"}, wire.MethodCancelTask},
	{http.MethodPost, []string{stepTasks, idStep + ":subscribe"}, wire.MethodSubscribe},
	{http.MethodGet, []string{stepTasks, idStep + ":subscribe"}, wire.MethodSubscribe},
	{http.MethodPost, []string{stepTasks, idStep, stepPush}, wire.MethodCreatePush},
	{http.MethodGet, []string{stepTasks, idStep, stepPush}, wire.MethodListPush},
	{http.MethodGet, []string{stepTasks, idStep, stepPush, idStep}, wire.MethodGetPush},
	{http.MethodDelete, []string{stepTasks, idStep, stepPush, idStep}, wire.MethodDeletePush},
}

// operation returns the operation that a method and the steps of a path name.
func operation(method string, steps []string) (destination, bool) {
	var to destination
	general := slices.Clone(steps) // with idStep for each id
	switch len(steps) {
	case 2: // a verb may follow the id
		verb := strings.LastIndexByte(steps[1], ':')
		if verb < 0 {
			verb = len(steps[1])
		}
		to.task, general[1] = steps[1][:verb], idStep+steps[1][verb:]
	case 3:
		to.task, general[1] = steps[1], idStep
	case 4:
		to.task, general[1] = steps[1], idStep
		to.config, general[3] = steps[3], idStep
	}
	for _, o := range paths {
		if o.method == method && slices.Equal(o.steps, general) {
			to.operation = o.operation
			return to, true
		}
	}
	return to, false
}
