package e2e

// phrase is something that a peer may say to a hub, or do.
type phrase struct {
	peer string // as in a conversation; "http", or "time" that passes
	text string // a frame; method and path with the body below; or what the peer does
}

// What a peer may do beside sending frames.
const (
	connects     = "connects"
	leaves       = "leaves"
	isCutOff     = "is cut off"
	stopsReading = "stops reading"
)

// peerHeaders are the headers with which peers connect.
var peerHeaders = map[string]string{
	"parallax middle":  "X-Agent-Id: middle",
	"acp family":       "X-Agent-Id: family",
	"acp kim":          "X-Agent-Id: kim",
	"native poet":      "X-Agent-Id: poet",
	"native kit":       "X-Agent-Id: kit",
	"native eye":       "X-Agent-Id: eye",
	"editor zed":       "Agent: fold",
	"editor-agent gem": "X-Agent-Id: gem",
}

// addressed are the values of $to.
var addressed = []string{"fold", "middle", "family", "poet", "capability:chat", "domain:family", "gem", "nobody"}

// learned are the members whose values phrases use.
var learned = []string{"id", "request_id", "execution", "sessionId", "requestId", "question_id", "injection_id", "taskId", "executionId", "cursor", "event_id"}

// modern is what a client of MCP says with each request.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"kit","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// phrases are all that the fuzzer says. Inputs have their numbers: add at the end, and at most
// 256.
var phrases = []phrase{
	{"time", "0s"}, {"time", "20ms"}, {"time", "1s"}, {"time", "12s"}, {"time", "70s"}, {"time", "6m"},

	{"coven fold", connects}, {"coven fold", leaves}, {"coven fold", isCutOff}, {"coven fold", stopsReading},
	{"coven fold", `{"register":{"agent_id":"fold","name":"Fold","capabilities":["chat"],"protocol_features":["cancellation","injection","tool_states","token_usage","max_concurrent=2"]}}`},
	{"coven fold", `{"register":{"agent_id":"fold","name":"Fold","capabilities":["chat"]}}`},
	{"coven fold", `{"response":{"request_id":"$task","text":"one "}}`},
	{"coven fold", `{"response":{"request_id":"$task","thinking":"hm"}}`},
	{"coven fold", `{"response":{"request_id":"$task","session_init":{"session_id":"b"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","tool_use":{"id":"t1","name":"bash","input_json":"{\"cmd\":\"df\"}"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","tool_approval_request":{"id":"t1","name":"bash","input_json":"{\"cmd\":\"df\"}"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","tool_state":{"id":"t1","state":"TOOL_STATE_RUNNING"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","tool_result":{"id":"t1","output":"plenty"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","usage":{"input_tokens":10,"output_tokens":2}}}`},
	{"coven fold", `{"response":{"request_id":"$task","file":{"filename":"a","mime_type":"text/plain","data":"aGk="}}}`},
	{"coven fold", `{"response":{"request_id":"$task","done":{"full_response":"one "}}}`},
	{"coven fold", `{"response":{"request_id":"$task","error":"it broke"}}`},
	{"coven fold", `{"response":{"request_id":"$task","cancelled":{"reason":"as you wish"}}}`},
	{"coven fold", `{"response":{"request_id":"$task","session_orphaned":{"reason":"expired"}}}`},
	{"coven fold", `{"injection_ack":{"injection_id":"$injection_id","accepted":true}}`},
	{"coven fold", `{"heartbeat":{"timestamp_ms":"946684800000"}}`},
	{"coven fold", `{"execute_pack_tool":{"request_id":"a","tool_name":"agent_ask","input_json":"{\"to\":\"$to\",\"content\":\"and you?\"}"}}`},
	{"coven fold", `{"execute_pack_tool":{"request_id":"b","tool_name":"agent_delegate","input_json":"{\"to\":\"$to\",\"content\":\"do it\"}"}}`},
	{"coven fold", `{"execute_pack_tool":{"request_id":"c","tool_name":"ask_user","input_json":"{\"question\":\"Sure?\",\"options\":[{\"label\":\"Yes\"}]}"}}`},
	{"coven fold", `{"execute_pack_tool":{"request_id":"d","tool_name":"thermometer","input_json":"{}"}}`},
	{"coven fold", `{"execute_pack_tool":{"request_id":"e","tool_name":"agent_notify","input_json":"{\"to\":\"hub\",\"topic\":\"build.done\",\"data\":1}"}}`},

	{"client ada", connects}, {"client ada", leaves},
	{"client ada", `{"stream_events":{"conversation_key":"fold"}}`},
	{"client ada", `{"stream_events":{"conversation_key":"fold","since_event_id":"$event_id"}}`},
	{"client ada", `{"send_message":{"conversation_key":"fold","content":"Tidy up.","idempotency_key":"k1"}}`},
	{"client ada", `{"send_message":{"conversation_key":"fold","content":"And again."}}`},
	{"client ada", `{"approve_tool":{"agent_id":"fold","tool_id":"t1","approved":true}}`},
	{"client ada", `{"answer_question":{"agent_id":"fold","question_id":"$question_id","selected":["Yes"]}}`},
	{"client ada", `{"get_events":{"conversation_key":"fold","limit":3}}`},

	{"parallax middle", connects}, {"parallax middle", leaves}, {"parallax middle", isCutOff}, {"parallax middle", stopsReading},
	{"parallax middle", `{"type":"register","id":"r","payload":{"capabilities":["chat"],"config":{"maxConcurrentTasks":2,"extensions":["task_accepted","task_progress","task_request"]}}}`},
	{"parallax middle", `{"type":"register","id":"r","payload":{"capabilities":["chat"]}}`},
	{"parallax middle", `{"type":"task_accepted","id":"1","payload":{"taskId":"$task","executionId":"$executionId"}}`},
	{"parallax middle", `{"type":"task_progress","id":"2","payload":{"taskId":"$task","seq":1,"text":"one "}}`},
	{"parallax middle", `{"type":"task_progress","id":"3","payload":{"taskId":"$task","seq":2,"text":"two"}}`},
	{"parallax middle", `{"type":"task_progress","id":"4","payload":{"taskId":"$task","toolCall":{"id":"t1","name":"search","input":{}}}}`},
	{"parallax middle", `{"type":"task_result","id":"5","payload":{"taskId":"$task","status":"completed","result":"two"}}`},
	{"parallax middle", `{"type":"task_result","id":"6","payload":{"taskId":"$task","executionId":"$executionId","status":"failed","result":null}}`},
	{"parallax middle", `{"type":"task_error","id":"7","payload":{"taskId":"$task","error":{"code":"X","message":"it broke","retryable":true}}}`},
	{"parallax middle", `{"type":"task_request","id":"q","payload":{"to":"$to","input":{"content":"and you?"},"parentTaskId":"$task"}}`},
	{"parallax middle", `{"type":"task_request","id":"p","payload":{"to":"$to","input":{"content":"?"},"timeout":2000}}`},
	{"parallax middle", `{"type":"task_cancel","id":"c","payload":{"requestId":"q"}}`},
	{"parallax middle", `{"type":"heartbeat","id":"h","payload":{"status":"idle"}}`},
	{"parallax middle", `{"type":"status_update","id":"s","payload":{"status":"draining"}}`},
	{"parallax middle", `{"type":"disconnect","id":"d","payload":{"reason":"done"}}`},

	{"acp family", connects}, {"acp family", leaves}, {"acp family", isCutOff},
	{"acp family", `{"v":1,"id":"c1","from":"family","ts":1771108000000,"kind":"capabilities","ref":null,"payload":{"agent_name":"Family","domains":["family"],"channels":[],"tools":[],"max_concurrent_tasks":2}}`},
	{"acp family", `{"v":1,"id":"s1","from":"family","ts":1771108000000,"kind":"subscribe","payload":{"topics":["build.*"]}}`},
	{"acp family", `{"v":1,"id":"a1","from":"family","ts":1771108000000,"kind":"ack","ref":"$id","payload":{"accepted":true}}`},
	{"acp family", `{"v":1,"id":"a2","from":"family","ts":1771108000000,"kind":"response","ref":"$id","payload":{"data":null,"summary":"On Monday"}}`},
	{"acp family", `{"v":1,"id":"a3","from":"family","ts":1771108000000,"kind":"result","ref":"$id","payload":{"success":true,"summary":"sent"}}`},
	{"acp family", `{"v":1,"id":"a4","from":"family","ts":1771108000000,"kind":"error","ref":"$id","payload":{"code":"internal","message":"it broke"}}`},
	{"acp family", `{"v":1,"id":"q9","from":"family","to":"$to","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"and you?"}}`},
	{"acp kim", connects}, {"acp kim", leaves}, {"acp kim", isCutOff},
	{"acp kim", `{"v":1,"id":"h1","from":"kim","to":"hub","ts":1771108000000,"kind":"hello","ref":null,"payload":{"protocol_versions":[1],"features":["progress"]}}`},
	{"acp kim", `{"v":1,"id":"q1","from":"kim","to":"$to","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"Is there room?"}}`},
	{"acp kim", `{"v":1,"id":"d1","from":"kim","to":"$to","ts":1771108000000,"kind":"delegate","payload":{"task":"send it","priority":"normal","report_back":true,"deadline_ms":60000}}`},
	{"acp kim", `{"v":1,"id":"x1","from":"kim","to":"$to","ts":1771108000000,"kind":"cancel","ref":"d1","payload":{"reason":"never mind"}}`},
	{"acp kim", `{"v":1,"id":"n1","from":"kim","to":"hub","ts":1771108000000,"kind":"notify","payload":{"topic":"build.done","data":{}}}`},

	{"native poet", connects}, {"native poet", leaves}, {"native poet", isCutOff}, {"native poet", stopsReading},
	{"native poet", `{"call":{"id":"1","act":"join","command":{"card":{"capabilities":["chat"],"max_concurrent":2,"features":["cancellation","injection","approvals","tool_states"]}}}}`},
	{"native poet", `{"call":{"id":"2","act":"join","command":{"card":{}}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"accepted","body":{}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"text","body":{"text":"one "}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"tool_call","body":{"id":"t1","name":"remove","input":"{}"}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"approval_requested","body":{"id":"t1","name":"remove","input":"{}"}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"injection_answered","body":{"id":"$id","accepted":true}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"newer","body":{"a":1}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"done","body":{}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"failed","body":{"fault":{"code":"internal","message":"it broke"}}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"cancelled","body":{"reason":"as you wish"}}}`},
	{"native poet", `{"event":{"task":"$task","kind":"assigned","body":{"agent":"poet"}}}`},
	{"native poet", `{"call":{"id":"o","act":"open","command":{"request":{"to":"$to","content":"and you?","cause":"$task"}}}}`},
	{"native poet", `{"ask":{"id":"q","task":"$task","question":{"question":"Sure?"}}}`},
	{"native poet", `{"load":{"state":"draining","id":"l"}}`},

	{"native kit", connects}, {"native kit", leaves}, {"native kit", isCutOff}, {"native kit", stopsReading},
	{"native kit", `{"call":{"id":"a","act":"open","command":{"request":{"to":"$to","content":"?"}}}}`},
	{"native kit", `{"call":{"id":"b","act":"open","command":{"request":{"to":"$to","content":"?","thread":"t"},"keep":true}}}`},
	{"native kit", `{"call":{"id":"c","act":"cancel","command":{"task":"$task","reason":"too late"}}}`},
	{"native kit", `{"call":{"id":"d","act":"inject","command":{"task":"$task","context":{"content":"be brief","priority":"immediate"}}}}`},
	{"native kit", `{"call":{"id":"e","act":"decide","command":{"task":"$task","decision":{"id":"t1","approved":true}}}}`},
	{"native kit", `{"call":{"id":"f","act":"read","command":{"task":"$task"}},"with":{"watch":true,"after":"$cursor"}}`},
	{"native kit", `{"call":{"id":"g","act":"provide","command":{"pack":"weather","tools":["thermometer"]}},"with":{"tools":[{"name":"thermometer","description":"How warm it is.","input_schema":{"type":"object"},"timeout_ms":5000}]}}`},
	{"native kit", `{"answer":{"execution":"$id","output":{"celsius":7}}}`},
	{"native kit", `{"call":{"id":"h","act":"answer","command":{"question":"$id","answer":{"text":"Yes"}}}}`},
	{"native eye", connects}, {"native eye", isCutOff},
	{"native eye", `{"call":{"id":"w","act":"watch_all","command":{}}}`},
	{"native eye", `{"call":{"id":"r","act":"read","command":{"task":"$task"}},"with":{"watch":true}}`},
	{"native eye", `{"call":{"id":"s","act":"subscribe","command":{"topics":["build.>"]}}}`},

	{"pi kit", connects}, {"pi kit", leaves}, {"pi kit", isCutOff},
	{"pi kit", `{"id":"1","type":"create_session","sessionId":"s","agent":"$to"}`},
	{"pi kit", `{"id":"2","type":"switch_session","sessionId":"s"}`},
	{"pi kit", `{"id":"3","type":"prompt","sessionId":"s","message":"Tell me a story"}`},
	{"pi kit", `{"id":"4","type":"abort","sessionId":"s"}`},
	{"pi kit", `{"id":"5","type":"steer","sessionId":"s","message":"be brief"}`},
	{"pi kit", `{"id":"6","type":"follow_up","sessionId":"s","message":"and then?"}`},
	{"pi kit", `{"id":"7","type":"extension_ui_response","sessionId":"s","requestId":"$requestId","response":{"method":"confirm","confirmed":true}}`},
	{"pi kit", `{"id":"8","type":"delete_session","sessionId":"s"}`},

	{"editor zed", connects}, {"editor zed", isCutOff},
	{"editor zed", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`},
	{"editor zed", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/user/project","mcpServers":[]}}`},
	{"editor zed", `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"$sessionId","prompt":[{"type":"text","text":"Count"}]}}`},
	{"editor zed", `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$sessionId"}}`},
	{"editor-agent gem", connects}, {"editor-agent gem", isCutOff},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{}}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"g"}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"g","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"one "}}}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`},

	{"http", "POST /v1/tasks\n" + `{"to":"$to","content":"hello"}`},
	{"http", "POST /v1/tasks\n" + `{"to":"$to","content":"hello","deadline_ms":2000,"thread":"t"}`},
	{"http", "POST /v1/tasks?wait=true\n" + `{"to":"$to","content":"hello"}`},
	{"http", "POST /v1/tasks/$task/cancel\n" + `{"reason":"never mind"}`},
	{"http", "POST /v1/tasks/$task/inject?wait=true\n" + `{"id":"inj1","content":"be brief","priority":"immediate"}`},
	{"http", "POST /v1/tasks/$task/decisions\n" + `{"id":"t1","approved":false}`},
	{"http", "GET /v1/tasks/$task/events?from=$cursor"},
	{"http", "GET /v1/events"},
	{"http", "GET /v1/tasks?limit=2"},
	{"http", "POST /v1/questions/$question_id/answer\n" + `{"selected":["Yes"]}`},
	{"http", "POST /v1/notices\n" + `{"to":"hub","topic":"build.done","data":{}}`},
	{"http", "PATCH /v1/agents/$to\n" + `{"max_concurrent":1}`},
	{"http", "POST /acp\n" + `{"v":1,"id":"p1","from":"web","to":"$to","ts":1771108000000,"kind":"query","ref":null,"payload":{"question":"?"}}`},
	{"http", "POST /a2a/$to\n" + `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m1","role":"ROLE_USER","contextId":"c1","parts":[{"text":"hello"}]}}}`},
	{"http", "POST /a2a/$to\n" + `{"jsonrpc":"2.0","id":2,"method":"SendStreamingMessage","params":{"message":{"messageId":"m2","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`},
	{"http", "POST /a2a/$to/rest/tasks/$task:subscribe\n{}"},
	{"http", "POST /a2a/$to/rest/tasks/$task:cancel\n{}"},
	{"http", "POST /mcp\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_ask","arguments":{"to":"$to","content":"Clean up"},` + modern + `}}`},
	{"http", "POST /mcp\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"thermometer","arguments":{},` + modern + `}}`},
	{"http", "POST /mcp\n" + `{"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"$task",` + modern + `}}`},
	{"http", "POST /mcp\n" + `{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"taskIds":["$task"]},` + modern + `}}`},

	{"editor-agent gem", `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"_meta":{"steering":{"supported":true}}}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"g","modes":{"currentModeId":"ask","availableModes":[{"id":"ask","name":"Ask"},{"id":"plan","name":"Plan"}]}}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":3,"result":{}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":4,"result":{"outcome":"injected"}}`},
	{"editor-agent gem", `{"jsonrpc":"2.0","id":4,"result":{"stopReason":"end_turn"}}`},
	{"http", "POST /v1/tasks\n" + `{"to":"gem","content":"hello","thread":"t","options":{"mode":"plan"}}`},
	{"editor zed", `{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"$sessionId","modeId":"plan"}}`},
	{"editor zed", `{"jsonrpc":"2.0","id":4,"method":"session/fork","params":{"sessionId":"$sessionId","cwd":"/home/user/project","mcpServers":[]}}`},
}
