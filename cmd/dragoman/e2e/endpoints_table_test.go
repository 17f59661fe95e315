package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/schemas"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

//go:generate go test -count=1 -run "^TestEveryEndpointSaysWhoMayUseIt$" . -update-docs

// updateDocs makes the test write docs/endpoints.md instead of comparing it.
var updateDocs = flag.Bool("update-docs", false, "write the generated parts of the documentation")

// endpointsPage is the page of all endpoints.
const endpointsPage = "../../../docs/endpoints.md"

// endpointsOf returns every endpoint of a hub: what is mounted, and below /v1 each route of the
// OpenAPI document, which has exactly those that are served.
func endpointsOf(t *testing.T, h *testHub) (all []service.Endpoint) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(schemas.OpenAPI, &document); err != nil {
		t.Fatal(err)
	}
	for _, e := range h.service.Endpoints() {
		if e.Path != "/v1/*" {
			all = append(all, e)
			continue
		}
		first := len(all)
		for path, methods := range document.Paths {
			for method := range methods {
				all = append(all, service.Endpoint{Listener: e.Listener, Method: strings.ToUpper(method), Path: path})
			}
		}
		slices.SortFunc(all[first:], func(a, b service.Endpoint) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
	}
	return all
}

// mayUse says who may use an endpoint.
type mayUse struct {
	// open needs no credential; own needs another than the hub's.
	open bool
	// right is the right that the hub asks about; "" for none.
	right string
	// bob is what a principal gets that no rule mentions, and status the status of the request
	// with the body; 0 is not tried.
	bob    string
	status int
	body   string
}

const (
	refused  = "refused"
	nothing  = "nothing: not found, or an empty list"
	onlyOwn  = "only their own"
	each     = "a connection, in which each command needs its right"
	everyone = "the same as everybody"
)

// commands is a connection in which commands are given.
var commands = mayUse{right: "that of each command", bob: each}

// opened needs no credential.
func opened(what string) mayUse { return mayUse{open: true, bob: what} }

// endpointAccess says it for every endpoint.
var endpointAccess = map[string]mayUse{
	"GET /healthz": opened(everyone), "GET /readyz": opened(everyone), "GET /health": opened(everyone), "GET /health/ready": opened(everyone),
	"* /.well-known/oauth-protected-resource": opened(everyone), "* /.well-known/oauth-protected-resource/mcp": opened(everyone), "* /register": opened(everyone),

	"GET /": opened("the console, which shows what the credential of its reader allows"), "GET /console/*": opened("its files"), "GET /console": opened("leads to the console"),

	"GET /metrics": {right: "operate", bob: refused, status: 403},

	"GET /v1/openapi.json":             {bob: everyone, status: 200},
	"GET /v1/hub":                      {right: "operate for the counters", bob: "the limits, and numbers of what he sees", status: 200},
	"POST /v1/hub/drain":               {right: "operate", bob: refused}, // not tried: an operator would end the other tries
	"POST /v1/hubs/{id}/forget":        {right: "operate", bob: refused, status: 403, body: `{}`},
	"GET /v1/usage":                    {right: "operate", bob: refused, status: 403},
	"GET /v1/events":                   {right: "operate", bob: refused, status: 403},
	"GET /v1/audit":                    {right: "operate", bob: refused, status: 403},
	"GET /v1/principals":               {right: "operate", bob: refused, status: 403},
	"POST /v1/principals/{id}/approve": {right: "operate", bob: refused, status: 403, body: `{}`},
	"POST /v1/principals/{id}/revoke":  {right: "operate", bob: refused, status: 403, body: `{}`},
	"GET /v1/agents":                   {right: "see", bob: nothing, status: 200},
	"GET /v1/agents/{id}":              {right: "see", bob: nothing, status: 404},
	"PATCH /v1/agents/{id}":            {right: "operate", bob: refused, status: 403, body: `{"max_concurrent":1}`},
	"POST /v1/agents/{id}/restart":     {right: "operate", bob: refused, status: 403, body: `{}`},
	"GET /v1/packs":                    {right: "see", bob: nothing, status: 200},
	"GET /v1/threads":                  {right: "read", bob: onlyOwn, status: 200},
	"GET /v1/threads/{id}":             {right: "read", bob: onlyOwn, status: 200},
	"GET /v1/approvals":                {right: "approve", bob: nothing, status: 200},
	"GET /v1/questions":                {right: "answer", bob: nothing, status: 200},
	"POST /v1/questions/{id}/answer":   {right: "answer", bob: refused},
	"GET /v1/tasks":                    {right: "read", bob: onlyOwn, status: 200},
	"POST /v1/tasks":                   {right: "ask", bob: refused, status: 404, body: `{"to":"none","content":"x"}`},
	"POST /v1/notices":                 {right: "ask", bob: "refused; on a topic nobody gets it", status: 404, body: `{"to":"none","topic":"a.b"}`},
	"GET /v1/tasks/{id}":               {right: "read", bob: onlyOwn, status: 404},
	"GET /v1/tasks/{id}/events":        {right: "read", bob: onlyOwn, status: 404},
	"GET /v1/tasks/{id}/readers":       {right: "read", bob: onlyOwn, status: 404},
	"GET /v1/tasks/{id}/frames":        {right: "read", bob: onlyOwn, status: 404},
	"POST /v1/tasks/{id}/cancel":       {right: "steer", bob: onlyOwn, status: 404, body: `{}`},
	"POST /v1/tasks/{id}/inject":       {right: "steer", bob: onlyOwn, status: 404, body: `{"content":"x"}`},
	"POST /v1/tasks/{id}/decisions":    {right: "approve", bob: refused, status: 404, body: `{"id":"x","approved":true}`},
	"GET /ws/agent":                    commands,
	"GET /ws/acp":                      commands,
	"GET /ws/editor":                   commands,
	"GET /ws/native":                   commands,
	"GET /ws/pi":                       commands,
	"* /*":                             commands,
	"* /acp":                           commands,
	"* /mcp":                           commands,
	"* /mcp/*":                         commands,
	"* /a2a":                           commands,
	"* /a2a/*":                         commands,
	"* /.well-known/agent-card.json":   {right: "see", bob: "the card of the hub, with the agents that he sees"},

	"/lf.a2a.v1.A2AService/SendMessage":                      commands,
	"/lf.a2a.v1.A2AService/SendStreamingMessage":             commands,
	"/lf.a2a.v1.A2AService/GetTask":                          {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/ListTasks":                        {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/CancelTask":                       {right: "steer", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/SubscribeToTask":                  {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig": {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/GetTaskPushNotificationConfig":    {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs":  {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig": {right: "read", bob: onlyOwn},
	"/lf.a2a.v1.A2AService/GetExtendedAgentCard":             {bob: "told that there is none"},

	"/coven.ClientService/AnswerQuestion":    {right: "answer", bob: refused},
	"/coven.ClientService/ApproveTool":       {right: "approve", bob: refused},
	"/coven.ClientService/GetEvents":         {right: "read", bob: onlyOwn},
	"/coven.ClientService/GetMe":             {bob: onlyOwn},
	"/coven.ClientService/ListAgents":        {right: "see", bob: nothing},
	"/coven.ClientService/RegisterAgent":     {bob: "told that the hub has no such command"},
	"/coven.ClientService/RegisterClient":    {bob: "told that the hub has no such command"},
	"/coven.ClientService/SendMessage":       {right: "ask", bob: refused},
	"/coven.ClientService/StreamEvents":      {right: "read", bob: onlyOwn},
	"/coven.CovenControl/AgentStream":        commands,
	"/coven.PackService/Register":            {right: "provide", bob: refused},
	"/coven.PackService/ToolResult":          {bob: "refused: it is for the pack that was called"},
	"/parallax.gateway.AgentGateway/Connect": commands,
	"/parallax.registry.Registry/GetAgent":   {right: "see", bob: nothing},
	"/parallax.registry.Registry/ListAgents": {right: "see", bob: nothing},
	"/parallax.registry.Registry/Register":   {bob: onlyOwn},
	"/parallax.registry.Registry/Renew":      {bob: onlyOwn},
	"/parallax.registry.Registry/Unregister": {bob: onlyOwn},
	"/parallax.registry.Registry/Watch":      {right: "see", bob: nothing},
	"/grpc.health.v1.Health/Check":           opened(everyone),
	"/grpc.health.v1.Health/List":            {bob: everyone},
	"/grpc.health.v1.Health/Watch":           {bob: everyone},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {bob: everyone},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {bob: everyone},
}

func nameOfEndpoint(e service.Endpoint) string { return strings.TrimSpace(e.Method + " " + e.Path) }

// TestEveryEndpointSaysWhoMayUseIt calls everything that is mounted without a credential, as bob,
// that no rule mentions, and as an operator. It fails for an endpoint that it does not know.
func TestEveryEndpointSaysWhoMayUseIt(t *testing.T) {
	h := newTestHub(t, ruled(t, "- {who: alice, may: [see, ask], to: \"*\"}\n"))
	all := endpointsOf(t, h)
	for name := range endpointAccess {
		if !slices.ContainsFunc(all, func(e service.Endpoint) bool { return nameOfEndpoint(e) == name }) {
			t.Errorf("%s: got a row, but no such endpoint", name)
		}
	}
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	for _, e := range all {
		name := nameOfEndpoint(e)
		said, known := endpointAccess[name]
		switch {
		case !known:
			t.Errorf("%s %s: got no row, want one that says who may use it", e.Listener, name)
		case e.Listener == "grpc_addr":
			for _, token := range []string{"", "bob", "root"} {
				if got, want := status.Code(callGRPC(t, cc, e.Path, token)) == codes.Unauthenticated, token == "" && !said.open; got != want {
					t.Errorf("%s as %q: got unauthenticated %v, want %v", name, token, got, want)
				}
			}
		default:
			at := h.url()
			if e.Listener == "pi_addr" {
				at = "http://" + h.service.Addresses().Pi
			}
			checkHTTP(t, at, e, said)
		}
	}
	page := endpointsTable(all)
	if *updateDocs {
		if err := os.WriteFile(endpointsPage, page, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if before, err := os.ReadFile(endpointsPage); err != nil || !bytes.Equal(before, page) {
		t.Errorf("docs/endpoints.md is outdated (%v): run make gen", err)
	}
}

// callGRPC begins a call of any kind and returns its error, nil if it waits.
func callGRPC(t *testing.T, cc *grpc.ClientConn, method, token string) error {
	t.Helper()
	wait := watchdog
	if token != "" {
		wait = 300 * time.Millisecond // who was let in may wait for ever
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(&emptypb.Empty{})
	_ = stream.CloseSend()
	if header, err := stream.Header(); err == nil && header != nil {
		return nil
	}
	return stream.RecvMsg(new(emptypb.Empty))
}

// checkHTTP calls an endpoint over HTTP.
func checkHTTP(t *testing.T, at string, e service.Endpoint, said mayUse) {
	t.Helper()
	method := e.Method
	if method == "*" {
		method = http.MethodGet
	}
	url := at + strings.ReplaceAll(strings.ReplaceAll(e.Path, "{id}", "none"), "*", "x")
	call := func(token string) int {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(said.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close() // a stream too
		return resp.StatusCode
	}
	if got := call(""); (got == http.StatusUnauthorized) == said.open {
		t.Errorf("%s %s without a credential: got %d, want it open %v", e.Method, url, got, said.open)
	}
	if said.status == 0 {
		return
	}
	if got := call("bob"); got != said.status {
		t.Errorf("%s %s as bob: got %d, want %d", e.Method, url, got, said.status)
	}
	if got := call("root"); got == http.StatusUnauthorized || got == http.StatusForbidden {
		t.Errorf("%s %s as an operator: got %d, want it allowed", e.Method, url, got)
	}
}

// endpointsTable is docs/endpoints.md.
func endpointsTable(all []service.Endpoint) []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- Generated by "make gen" from what is mounted on each listener. Do not edit. -->

# Endpoints

Everything that can be called at a hub, by listener. Where [authentication](authentication.md) is set, each wants a credential unless it is open; any of those on that
page will do. Without authentication nobody needs one. The right is wanted where there are [rules](rights.md); a principal with ` + "`operator: true`" + ` passes them all. The last column is for a principal that no rule mentions.
Besides, the Unix socket of pi-server (` + "`pi_socket`" + `) and stdin (` + "`--stdio`" + `) are for the user that runs the hub.
A hub of a cluster with embedded NATS listens at two more addresses, which admit only hubs: ` + "`cluster.listen`" + ` wants the secret of the cluster, and TLS with a key made of it or the certificates of ` + "`cluster.tls`" + `; a
port of 127.0.0.1 that the system chooses admits nobody at all. A process opens no other port.
`)
	for _, listener := range []struct{ key, title string }{{"http_addr", "HTTP"}, {"pi_addr", "pi-server's own address"}, {"grpc_addr", "gRPC"}} {
		fmt.Fprintf(&b, "\n## %s (`%s`)\n\n| endpoint | credential | right | without a rule |\n|---|---|---|---|\n", listener.title, listener.key)
		for _, e := range all {
			if e.Listener != listener.key {
				continue
			}
			said := endpointAccess[nameOfEndpoint(e)]
			credential := "yes"
			if said.open {
				credential = "open"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", nameOfEndpoint(e), credential, said.right, said.bob)
		}
	}
	return b.Bytes()
}

// TestTheTableOfEndpointsNamesRightsThatExist keeps the words of the table those of the rules.
func TestTheTableOfEndpointsNamesRightsThatExist(t *testing.T) {
	for name, said := range endpointAccess {
		first, _, _ := strings.Cut(said.right, " ")
		if first == "" || first == "that" {
			continue
		}
		if !slices.ContainsFunc(core.Acts(), func(a core.Act) bool { return a.Right().String() == first }) {
			t.Errorf("%s: got the right %q, want one of the rules", name, first)
		}
	}
}
