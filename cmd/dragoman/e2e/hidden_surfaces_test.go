package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
	gatewaywire "github.com/dragoman-hub/dragoman/proto/parallax/gateway"
	registrywire "github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

const (
	namesNobody = "it says nothing of agents"
	asA2A       = "it is a method of A2A, as those of * /a2a"
	ofItsOwn    = "it takes what the caller has, and answers with that"
)

// hiddenSurfaces are the surfaces of a hub, by endpoint.
var hiddenSurfaces = map[string]hiddenSurface{
	"GET /healthz": {}, "GET /readyz": {}, "GET /health": {}, "GET /health/ready": {},
	"* /.well-known/oauth-protected-resource": {}, "* /.well-known/oauth-protected-resource/mcp": {}, "* /register": {},
	"GET /": {}, "GET /console": {}, "GET /console/*": {},
	"GET /metrics": {finds: true},

	"GET /v1/openapi.json":             {},
	"GET /v1/hub":                      {},
	"GET /v1/usage":                    {finds: true},
	"GET /v1/events":                   {},
	"GET /v1/audit":                    {finds: true},
	"GET /v1/principals":               {},
	"POST /v1/principals/{id}/approve": {},
	"POST /v1/principals/{id}/revoke":  {},
	"GET /v1/agents":                   {finds: true},
	"GET /v1/agents/{id}":              {finds: true, names: true},
	"PATCH /v1/agents/{id}":            {names: true},
	"POST /v1/agents/{id}/restart":     {names: true},
	"GET /v1/packs":                    {},
	"GET /v1/threads":                  {finds: true},
	"GET /v1/threads/{id}":             {finds: true},
	"POST /v1/hub/drain":               {because: "the hub would take nothing any more; bob is refused in TestBobMayDoNothingThatAliceMay"},
	"POST /v1/hubs/{id}/forget":        {because: "it names a hub of the cluster, and this one is alone"},
	"GET /v1/approvals":                {finds: true},
	"GET /v1/questions":                {finds: true},
	"POST /v1/questions/{id}/answer":   {because: "alice's question would be answered; bob is refused in TestBobMayDoNothingThatAliceMay"},
	"GET /v1/tasks":                    {finds: true},
	"POST /v1/tasks":                   {finds: true, names: true},
	"POST /v1/notices":                 {finds: true, names: true},
	"GET /v1/tasks/{id}":               {finds: true},
	"GET /v1/tasks/{id}/events":        {finds: true},
	"GET /v1/tasks/{id}/readers":       {},
	"GET /v1/tasks/{id}/frames":        {finds: true},
	"POST /v1/tasks/{id}/cancel":       {},
	"POST /v1/tasks/{id}/inject":       {},
	"POST /v1/tasks/{id}/decisions":    {},

	"GET /ws/agent":                  {finds: true, names: true, read: readParallax},
	"GET /ws/acp":                    {finds: true, names: true, read: readACP},
	"GET /ws/editor":                 {finds: true, names: true, read: readEditor},
	"GET /ws/native":                 {finds: true, names: true, read: readNative},
	"GET /ws/pi":                     {finds: true, names: true, read: func(v visit, id string) string { return readPi(v, v.url()+"/ws/pi", id) }},
	"* /*":                           {finds: true, names: true, read: func(v visit, id string) string { return readPi(v, "http://"+v.service.Addresses().Pi, id) }},
	"* /acp":                         {finds: true, names: true, read: readACPOverHTTP},
	"* /mcp":                         {finds: true, names: true, read: func(v visit, id string) string { return readMCP(v, v.url()+"/mcp", id) }},
	"* /mcp/*":                       {finds: true, names: true, read: func(v visit, id string) string { return readMCP(v, v.url()+"/mcp/"+v.who, id) }},
	"* /a2a":                         {finds: true, names: true, read: func(v visit, id string) string { return readA2A(v, "", id) }},
	"* /a2a/*":                       {finds: true, names: true, read: func(v visit, id string) string { return readA2A(v, "/"+id, id) }},
	"* /.well-known/agent-card.json": {finds: true},

	"/lf.a2a.v1.A2AService/SendMessage": {names: true, read: func(v visit, id string) string {
		parts := []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "go"}}}
		r, err := a2apb.NewA2AServiceClient(v.cc).SendMessage(v.a2a(), &a2apb.SendMessageRequest{Tenant: id, Message: &a2apb.Message{MessageId: v.key(), Role: a2apb.Role_ROLE_USER, Parts: parts}})
		return fmt.Sprint(r, err)
	}},
	"/lf.a2a.v1.A2AService/ListTasks": {finds: true, read: func(v visit, _ string) string {
		r, err := a2apb.NewA2AServiceClient(v.cc).ListTasks(v.a2a(), &a2apb.ListTasksRequest{})
		return fmt.Sprint(r, err)
	}},
	"/lf.a2a.v1.A2AService/SendStreamingMessage":             {because: asA2A},
	"/lf.a2a.v1.A2AService/GetTask":                          {because: asA2A},
	"/lf.a2a.v1.A2AService/CancelTask":                       {because: asA2A},
	"/lf.a2a.v1.A2AService/SubscribeToTask":                  {because: asA2A},
	"/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig": {because: asA2A},
	"/lf.a2a.v1.A2AService/GetTaskPushNotificationConfig":    {because: asA2A},
	"/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs":  {because: asA2A},
	"/lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig": {because: asA2A},
	"/lf.a2a.v1.A2AService/GetExtendedAgentCard":             {because: asA2A},

	"/coven.ClientService/AnswerQuestion": {because: "as POST /v1/questions/{id}/answer"},
	"/coven.ClientService/ApproveTool": {names: true, read: func(v visit, id string) string {
		r, err := wire.NewClientServiceClient(v.cc).ApproveTool(v.ctx(), &wire.ApproveToolRequest{AgentId: id, ToolId: "no such call"})
		return fmt.Sprint(r, err)
	}},
	"/coven.ClientService/GetEvents": {finds: true, read: func(v visit, _ string) string {
		r, err := wire.NewClientServiceClient(v.cc).GetEvents(v.ctx(), &wire.GetEventsRequest{ConversationKey: "trip"})
		return fmt.Sprint(r, err)
	}},
	"/coven.ClientService/GetMe": {read: func(v visit, _ string) string {
		r, err := wire.NewClientServiceClient(v.cc).GetMe(v.ctx(), nil)
		return fmt.Sprint(r, err)
	}},
	"/coven.ClientService/ListAgents": {finds: true, read: func(v visit, _ string) string {
		r, err := wire.NewClientServiceClient(v.cc).ListAgents(v.ctx(), &wire.ListAgentsRequest{})
		return fmt.Sprint(r, err)
	}},
	"/coven.ClientService/RegisterAgent":  {because: ofItsOwn},
	"/coven.ClientService/RegisterClient": {because: ofItsOwn},
	"/coven.ClientService/SendMessage": {names: true, read: func(v visit, id string) string {
		r, err := wire.NewClientServiceClient(v.cc).SendMessage(v.ctx(), &wire.ClientSendMessageRequest{ConversationKey: id, Content: "go", IdempotencyKey: v.key()})
		return fmt.Sprint(r, err)
	}},
	"/coven.ClientService/StreamEvents": {finds: true, read: func(v visit, _ string) string {
		last := func() string { // bob's own task in the conversation
			question := "the last question " + v.key()
			v.http(http.MethodPost, v.url()+"/v1/tasks", `{"to":"open-agent","content":"`+question+`","thread":"trip"}`)
			return question
		}
		return received(v, last, func(ctx context.Context) (grpc.ServerStreamingClient[wire.ClientStreamEvent], error) {
			return wire.NewClientServiceClient(v.cc).StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: "trip"})
		})
	}},
	"/coven.CovenControl/AgentStream": {finds: true, names: true, read: readCovenAgent},
	"/coven.PackService/Register":     {because: ofItsOwn},
	"/coven.PackService/ToolResult":   {because: ofItsOwn},

	"/parallax.gateway.AgentGateway/Connect": {read: func(v visit, _ string) string {
		stream, err := gatewaywire.NewAgentGatewayClient(v.cc).Connect(v.ctx())
		if err != nil {
			v.Fatal(err)
		}
		hello := &gatewaywire.AgentHello{AgentId: v.who + "-gateway"}
		if err := stream.Send(&gatewaywire.AgentToControlPlane{RequestId: "h", Payload: &gatewaywire.AgentToControlPlane_Hello{Hello: hello}}); err != nil {
			v.Fatal(err)
		}
		m, err := stream.Recv()
		_ = stream.CloseSend()
		return fmt.Sprint(m, err)
	}},
	"/parallax.registry.Registry/GetAgent": {names: true, read: func(v visit, id string) string {
		r, err := registrywire.NewRegistryClient(v.cc).GetAgent(v.ctx(), &registrywire.GetAgentRequest{AgentId: id})
		return fmt.Sprint(r, err)
	}},
	"/parallax.registry.Registry/ListAgents": {finds: true, read: func(v visit, _ string) string {
		r, err := registrywire.NewRegistryClient(v.cc).ListAgents(v.ctx(), &registrywire.ListAgentsRequest{})
		return fmt.Sprint(r, err)
	}},
	"/parallax.registry.Registry/Register":   {because: ofItsOwn},
	"/parallax.registry.Registry/Renew":      {because: ofItsOwn},
	"/parallax.registry.Registry/Unregister": {because: ofItsOwn},
	"/parallax.registry.Registry/Watch": {finds: true, read: func(v visit, _ string) string {
		last := func() string { return visibleAgent } // the agents come in the order of their ids
		return received(v, last, func(ctx context.Context) (grpc.ServerStreamingClient[registrywire.WatchEvent], error) {
			return registrywire.NewRegistryClient(v.cc).Watch(ctx, &registrywire.WatchRequest{IncludeInitial: true})
		})
	}},
	"/grpc.health.v1.Health/Check": {because: namesNobody},
	"/grpc.health.v1.Health/List":  {because: namesNobody},
	"/grpc.health.v1.Health/Watch": {because: namesNobody},

	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {because: namesNobody},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {because: namesNobody},
}

// received returns what comes on a stream without an end: to who may find the hidden agent until that is there, to
// others until something is there that comes last. What that is last says, which may cause it once the stream is open.
func received[M any](v visit, last func() string, open func(context.Context) (grpc.ServerStreamingClient[M], error)) (all string) {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx(), watchdog)
	defer cancel()
	stream, err := open(ctx)
	if err == nil {
		_, err = stream.Header() // it was let in, or has ended
	}
	done := hasMark
	if err == nil && !v.finds() {
		want := last()
		done = func(text string) bool { return strings.Contains(text, want) }
	}
	for err == nil && !done(all) {
		var m *M
		if m, err = stream.Recv(); err == nil {
			all += fmt.Sprint(m) + "\n"
		}
	}
	if err != nil {
		v.Fatalf("a stream without an end as %s: got %v after\n%s\nwant what comes last", v.who, err, all)
	}
	return all
}

// named fills in frames: ID is the agent that is named, TASK alice's task, ME the reader.
func named(v visit, id string, frames ...string) []string {
	r := strings.NewReplacer("ID", id, "TASK", string(v.task), "ME", v.who)
	for i := range frames {
		frames[i] = r.Replace(frames[i])
	}
	return frames
}

// answersTo returns the texts of the answers to frames with the ids.
func answersTo(pattern string, ids ...string) []string {
	for i, id := range ids {
		ids[i] = fmt.Sprintf(pattern, id)
	}
	return ids
}

func readParallax(v visit, id string) string {
	return v.talk(v.url()+"/ws/agent", http.Header{"X-Agent-Id": {v.who + "-parallax"}}, named(v, id,
		`{"type":"register","id":"r","payload":{"capabilities":["x"],"config":{"extensions":["task_request"]}}}`,
		`{"type":"task_request","id":"q","payload":{"to":"ID","input":{"content":"go"}}}`,
	), `"registered"`, `"type":"task_error"`)
}

func readACP(v visit, id string) string {
	return v.talk(v.url()+"/ws/acp", http.Header{"X-Agent-Id": {v.who + "-acp"}}, named(v, id,
		`{"v":1,"id":"d1","kind":"discover"}`, `{"v":1,"id":"d2","kind":"discover","to":"ID"}`, `{"v":1,"id":"p1","kind":"ping","to":"ID"}`,
		`{"v":1,"id":"p2","kind":"ping"}`, `{"v":1,"id":"q1","kind":"query","to":"ID","payload":{"question":"go?"}}`,
		`{"v":1,"id":"s1","kind":"subscribe","payload":{"topics":[">"]}}`,
	), answersTo(`"ref":"%s"`, "d1", "d2", "p1", "p2", "q1", "s1")...)
}

func readACPOverHTTP(v visit, id string) (all string) {
	for _, envelope := range named(v, id,
		`{"v":1,"id":"d1","kind":"discover"}`, `{"v":1,"id":"d2","kind":"discover","to":"ID"}`, `{"v":1,"id":"p1","kind":"ping","to":"ID"}`,
		`{"v":1,"id":"q1","kind":"query","to":"ID","payload":{"question":"go?"}}`,
	) {
		all += v.http(http.MethodPost, v.url()+"/acp", strings.Replace(envelope, `"id":"`, `"id":"`+v.key(), 1), "X-Agent-Id: "+v.who+"-http")
	}
	return all
}

func readEditor(v visit, id string) string {
	return v.talk(v.url()+"/ws/editor?agent="+id, http.Header{}, named(v, id,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/list","params":{}}`,
		`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"trip","cwd":"/","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":4,"method":"session/resume","params":{"sessionId":"trip","cwd":"/","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
	), answersTo(`"id":%s,`, "1", "2", "3", "4", "5")...)
}

func readNative(v visit, id string) string {
	frames := []string{`{"tools":{"id":"tools"}}`}
	want := []string{"tools"}
	call := func(act, command, with string) {
		want = append(want, fmt.Sprint("c", len(want)))
		frames = append(frames, fmt.Sprintf(`{"call":{"id":%q,"act":%q,"command":%s}%s}`, want[len(want)-1], act, command, with))
	}
	for _, list := range []string{"agents", "tasks", "approvals", "questions", "packs", "usage", "audit", "principals"} {
		call("list", `{"what":"`+list+`"}`, "")
	}
	call("read", `{"task":"TASK"}`, `,"with":{"watch":true}`)
	call("readers", `{"task":"TASK"}`, "")
	call("follow", `{"thread":"trip"}`, "")
	call("subscribe", `{"topics":[">"]}`, "")
	call("open", `{"request":{"to":"ID","content":"go"}}`, "")
	call("call_tool", `{"tool":"agents_list","input":{}}`, "")
	call("call_tool", `{"tool":"agent_ask","input":{"to":"ID","content":"go"}}`, "")
	call("call_tool", `{"tool":"agent_notify","input":{"to":"ID","topic":"a.b"}}`, "")
	call("call_tool", `{"tool":"agent_result","input":{"task_id":"TASK"}}`, "")
	call("configure", `{"agent":"ID","max_concurrent":8}`, "")
	call("restart", `{"name":"ID"}`, "")
	if !v.finds() {
		call("watch_all", `{}`, "")
	}
	return v.talk(v.url()+"/ws/native", http.Header{}, named(v, id, frames...), answersTo(`"id":"%s"`, want...)...)
}

func readPi(v visit, url, id string) string {
	session := v.key()
	frames := named(v, id,
		`{"id":"p1","type":"create_session","sessionId":"S","agent":"ID"}`, `{"id":"p2","type":"switch_session","sessionId":"S"}`,
		`{"id":"p3","type":"get_available_models","sessionId":"S"}`, `{"id":"p4","type":"get_metrics"}`, `{"id":"p5","type":"health_check"}`, `{"id":"p6","type":"get_commands","sessionId":"S"}`,
		`{"id":"p7","type":"get_state","sessionId":"S"}`, `{"id":"p8","type":"prompt","sessionId":"S","message":"/agents"}`, `{"id":"p9","type":"list_sessions"}`,
		`{"id":"p10","type":"list_stored_sessions"}`, `{"id":"p11","type":"get_command_history"}`, `{"id":"p12","type":"create_session","sessionId":"Strip","thread":"trip"}`,
		`{"id":"p13","type":"set_model","sessionId":"S","provider":"test","modelId":"ID"}`, `{"id":"p14","type":"get_tools","sessionId":"S"}`,
		`{"id":"p15","type":"prompt","sessionId":"S","message":"go"}`, `{"id":"p16","type":"get_messages","sessionId":"S"}`, `{"id":"p17","type":"get_tree","sessionId":"S"}`,
	)
	var want []string
	for i := range frames {
		frames[i] = strings.ReplaceAll(strings.Replace(frames[i], `"id":"p`, `"id":"`+session+"-", 1), `"S`, `"`+session)
		want = append(want, fmt.Sprintf(`"id":"%s-%d","type":"response"`, session, i+1))
	}
	return v.talk(url, http.Header{}, frames, want...)
}

func readMCP(v visit, url, id string) (all string) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"kit","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for _, call := range named(v, id,
		`"server/discover","params":{`, `"tools/list","params":{`, `"resources/list","params":{`, `"prompts/list","params":{`,
		`"tools/call","params":{"name":"agents_list","arguments":{},`, `"tools/call","params":{"name":"agent_ask","arguments":{"to":"ID","content":"go"},`,
		`"tools/call","params":{"name":"agent_notify","arguments":{"to":"ID","topic":"a.b"},`, `"tools/call","params":{"name":"agent_result","arguments":{"task_id":"TASK"},`,
		`"tools/call","params":{"name":"task_readers","arguments":{"task_id":"TASK"},`, `"tasks/get","params":{"taskId":"TASK",`,
	) {
		method, _, _ := strings.Cut(strings.TrimPrefix(call, `"`), `"`)
		headers := []string{"Mcp-Method: " + method, "Mcp-Protocol-Version: 2026-07-28"}
		if _, after, is := strings.Cut(call, `"name":"`); is {
			name, _, _ := strings.Cut(after, `"`)
			headers = append(headers, "Mcp-Name: "+name)
		}
		all += v.http(http.MethodPost, url, `{"jsonrpc":"2.0","id":1,"method":`+call+meta+`}}`, headers...)
	}
	return all
}

// a2a is the context of a call of A2A over gRPC.
func (v visit) a2a() context.Context {
	return metadata.AppendToOutgoingContext(v.ctx(), "a2a-version", "1.0")
}

func readA2A(v visit, agent, id string) (all string) {
	tenant := ""
	if agent == "" {
		tenant = `"tenant":"` + id + `",`
	}
	for _, call := range named(v, id,
		`"ListTasks","params":{}`, `"GetTask","params":{"id":"TASK"}`, `"GetExtendedAgentCard","params":{}`,
		`"SendMessage","params":{`+tenant+`"message":{"messageId":"`+v.key()+`","role":"ROLE_USER","parts":[{"text":"go"}]}}`,
	) {
		all += v.http(http.MethodPost, v.url()+"/a2a"+agent, `{"jsonrpc":"2.0","id":1,"method":`+call+`}`, "A2A-Version: 1.0")
	}
	if agent != "" {
		all += v.http(http.MethodGet, v.url()+"/a2a"+agent+"/.well-known/agent-card.json", "")
		all += v.http(http.MethodGet, v.url()+"/a2a"+agent+"/rest/tasks", "", "A2A-Version: 1.0")
	}
	return all
}

// readCovenAgent reads as an agent that calls the tools of the hub.
func readCovenAgent(v visit, id string) string {
	stream, err := wire.NewCovenControlClient(v.cc).AgentStream(v.ctx())
	if err != nil {
		v.Fatal(err)
	}
	all, err := registerCoven(v.T, stream, v.who+"-coven")
	text := fmt.Sprint(all, err)
	for _, tool := range named(v, id, `agents_list {}`, `agent_ask {"to":"ID","content":"go"}`, `agent_notify {"to":"ID","topic":"a.b"}`, `agent_result {"task_id":"TASK"}`, `task_readers {"task_id":"TASK"}`) {
		name, input, _ := strings.Cut(tool, " ")
		call := &wire.ExecutePackTool{RequestId: name, ToolName: name, InputJson: input}
		if err := stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: call}}); err != nil {
			v.Fatal(err)
		}
		for {
			m, err := stream.Recv()
			if err != nil {
				v.Fatal(err)
			}
			if text += fmt.Sprint(m); m.GetPackToolResult() != nil {
				break
			}
		}
	}
	_ = stream.CloseSend()
	for { // until it has left, so that its id is free
		if _, err := stream.Recv(); err != nil {
			return text
		}
	}
}
