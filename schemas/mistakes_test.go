package schemas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

func TestATypicalMistakeIsNamedWithWhatIsWanted(t *testing.T) {
	for name, c := range map[string]struct {
		schema     *schemas.Schema
		text, want string
	}{
		"a result without its task": {
			schemas.Parallax("task_result"), `{"type":"task_result","id":"1","payload":{"status":"completed","result":1}}`,
			`payload.taskId: missing; send the id of the task`,
		},
		"a result with an empty task": {
			schemas.Parallax("task_result"), `{"type":"task_result","payload":{"taskId":""}}`,
			`payload.taskId: empty; send the id of the task`,
		},
		"a result with null for its task": {
			schemas.Parallax("task_result"), `{"type":"task_result","payload":{"taskId":null}}`,
			`payload.taskId: want a string (the id of the task), got null`,
		},
		"a message without payload": {
			schemas.Parallax("register"), `{"type":"register","id":"1"}`,
			`payload: missing; send the payload of the message`,
		},
		"capabilities as one string": {
			schemas.Parallax("register"), `{"type":"register","payload":{"capabilities":"analysis"}}`,
			`payload.capabilities: want an array of strings (the names of what the agent can do), got a string`,
		},
		"a number among capabilities": {
			schemas.Parallax("register"), `{"type":"register","payload":{"capabilities":["a",2]}}`,
			`payload.capabilities[1]: want a string, got a number`,
		},
		"no capabilities": {
			schemas.Parallax("register"), `{"type":"register","payload":{"metadata":{}}}`,
			`payload.capabilities: missing; send the names of what the agent can do`,
		},
		"half a task at once": {
			schemas.Parallax("register"), `{"type":"register","payload":{"capabilities":[],"config":{"maxConcurrentTasks":0.5}}}`,
			`payload.config.maxConcurrentTasks: want a whole number (how many tasks the agent runs at once), got 0.5`,
		},
		"a negative count": {
			schemas.Parallax("heartbeat"), `{"type":"heartbeat","payload":{"activeTasks":-1}}`,
			`payload.activeTasks: want at least 0, got -1`,
		},
		"an error that is a string": {
			schemas.Parallax("task_error"), `{"type":"task_error","payload":{"taskId":"t","error":"it broke"}}`,
			`payload.error: want an object (the error, as a code and a message), got a string`,
		},
		"an error without code": {
			schemas.Parallax("task_error"), `{"type":"task_error","payload":{"taskId":"t","error":{"message":"it broke"}}}`,
			`payload.error.code: missing; send a short code such as PROCESSING_ERROR`,
		},
		"a time in milliseconds": {
			schemas.Parallax("heartbeat"), `{"type":"heartbeat","timestamp":1705314600000,"payload":{}}`,
			`timestamp: want a string (the time in ISO 8601, such as 2024-01-15T10:30:00.000Z), got a number`,
		},
		"a number for an id": {
			schemas.Parallax("heartbeat"), `{"type":"heartbeat","id":4}`,
			`id: want a string (the id of the message), got a number`,
		},
		"a priority of another dialect": {
			schemas.Parallax("task_request"), `{"type":"task_request","payload":{"input":"x","priority":"urgent"}}`,
			`payload.priority: want "low", "normal", "high" or "critical", got "urgent"`,
		},
		"a state that no tool call has": {
			schemas.Parallax("task_progress"), `{"type":"task_progress","payload":{"taskId":"t","toolState":{"id":"c","state":"done"}}}`,
			`payload.toolState.state: want "pending", "awaiting_approval", "running", "completed", "failed", "denied", "timeout" or "cancelled", got "done"`,
		},
		"a tool call without its state": {
			schemas.Parallax("task_progress"), `{"type":"task_progress","payload":{"taskId":"t","toolState":{"id":"c"}}}`,
			`payload.toolState.state: missing; send where the tool call stands: "pending", "awaiting_approval", "running", "completed", "failed", "denied", "timeout" or "cancelled"`,
		},
		"an array for the whole": {
			schemas.Parallax("task"), `[{"type":"task"}]`,
			`want an object, got an array`,
		},
		"another type than the schema's": {
			schemas.Parallax("task"), `{"type":"register","payload":{"taskId":"t","input":1}}`,
			`type: want "task", got "register"`,
		},
		"an envelope without type": {
			schemas.ParallaxEnvelope, `{"payload":{}}`,
			`type: missing; send the type of the message`,
		},

		"an envelope without id": {
			schemas.ACP("ping"), `{"v":1,"kind":"ping"}`,
			`id: missing; send an id of its own for the message`,
		},
		"another version": {
			schemas.ACP("ping"), `{"v":2,"id":"1","kind":"ping"}`,
			`v: want 1, got 2`,
		},
		"a version as a string": {
			schemas.ACP("ping"), `{"v":"1","id":"1","kind":"ping"}`,
			`v: want 1, got "1"`,
		},
		"a time as a string": {
			schemas.ACP("ping"), `{"id":"1","kind":"ping","ts":"2026-01-02T03:04:05Z"}`,
			`ts: want a number (milliseconds since 1970), got a string`,
		},
		"a question under another name": {
			schemas.ACP("query"), `{"id":"1","kind":"query","payload":{"query":"what?"}}`,
			`payload.question: missing; send the question, in words or as a structure`,
		},
		"an empty question": {
			schemas.ACP("query"), `{"id":"1","kind":"query","payload":{"question":""}}`,
			`payload.question: empty; send the question, in words or as a structure`,
		},
		"a number for a question": {
			schemas.ACP("query"), `{"id":"1","kind":"query","payload":{"question":7}}`,
			`payload.question: want a string, an array or an object (the question, in words or as a structure), got a number`,
		},
		"an answer to nothing": {
			schemas.ACP("response"), `{"id":"1","kind":"response","payload":{"summary":"x"}}`,
			`ref: missing; send the id of the message that this one answers`,
		},
		"a cancel of nothing": {
			schemas.ACP("cancel"), `{"id":"1","kind":"cancel","payload":{}}`,
			`ref: missing; send the id of the query or delegate that is called off`,
		},
		"an answer to null": {
			schemas.ACP("response"), `{"id":"1","kind":"response","ref":null,"payload":{"summary":"x"}}`,
			`ref: want a string (the id of the message that this one answers), got null`,
		},
		"an answer without words": {
			schemas.ACP("response"), `{"id":"1","kind":"response","ref":"0","payload":{"data":{}}}`,
			`payload.summary: missing; send the answer in words`,
		},
		"a refusal without a verdict": {
			schemas.ACP("ack"), `{"id":"1","kind":"ack","ref":"0","payload":{}}`,
			`payload.accepted: missing; send whether it was accepted`,
		},
		"a verdict in words": {
			schemas.ACP("ack"), `{"id":"1","kind":"ack","ref":"0","payload":{"accepted":"yes"}}`,
			`payload.accepted: want true or false (whether it was accepted), got a string`,
		},
		"an outcome that is no outcome": {
			schemas.ACP("result"), `{"id":"1","kind":"result","ref":"0","payload":{"status":"done","outcome":"x"}}`,
			`payload.status: want "completed", "failed" or "partial", got "done"`,
		},
		"progress without its place": {
			schemas.ACP("progress"), `{"id":"1","kind":"progress","ref":"0","payload":{"text":"x"}}`,
			`payload.seq: missing; send the place in the progress of the task, a number that grows`,
		},
		"progress that counts backwards": {
			schemas.ACP("progress"), `{"id":"1","kind":"progress","ref":"0","payload":{"seq":-1}}`,
			`payload.seq: want at least 0, got -1`,
		},
		"an empty kind": {
			schemas.ACPEnvelope(), `{"id":"1","kind":""}`,
			`kind: empty; send the kind of the message`,
		},
		"a payload that is a string": {
			schemas.ACP("notify"), `{"id":"1","kind":"notify","payload":"hello"}`,
			`payload: want an object (the payload of the message), got a string`,
		},

		"text that is no JSON": {
			schemas.ACP("ping"), `{"id":"1","kind":"ping"`,
			`not JSON: unexpected end of JSON input`,
		},
		"text that is no JSON further in": {
			schemas.ACP("ping"), `{"id":"1","kind":"ping","payload":{"x":tru}}`,
			`not JSON: invalid character '}' in literal true (expecting 'e')`,
		},
		"nothing": {
			schemas.ACP("ping"), ``,
			`not JSON: unexpected end of JSON input`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.schema.Validate([]byte(c.text))
			var v *schemas.Violation
			if !errors.As(err, &v) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestWhatPeersMayLeaveOutOrAddIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		schema *schemas.Schema
		text   string
	}{
		"a message with its type alone":          {schemas.Parallax("heartbeat"), `{"type":"heartbeat"}`},
		"null for everything optional":           {schemas.Parallax("task_result"), `{"type":"task_result","id":null,"timestamp":null,"signature":null,"payload":{"taskId":"t","executionId":null,"status":null,"result":null,"duration":null,"metadata":null}}`},
		"fields that nobody knows":               {schemas.Parallax("heartbeat"), `{"type":"heartbeat","x":{"a":[1,{"b":"]}"}]},"payload":{"y":"\"","activeTasks":1}}`},
		"a duration that is no whole number":     {schemas.Parallax("task_result"), `{"type":"task_result","payload":{"taskId":"t","duration":1500.25}}`},
		"a whole number with a fraction of zero": {schemas.Parallax("heartbeat"), `{"type":"heartbeat","payload":{"activeTasks":2.0}}`},
		"a whole number with an exponent":        {schemas.Parallax("heartbeat"), `{"type":"heartbeat","payload":{"activeTasks":2e1}}`},
		"a failed task without a message":        {schemas.Parallax("task_error"), `{"type":"task_error","payload":{"taskId":"t","error":{"code":"X"}}}`},
		"a refused request, which has no task":   {schemas.Parallax("task_error"), `{"type":"task_error","payload":{"requestId":"r","error":{"code":"X","message":"y"}}}`},
		"capacity alone":                         {schemas.Parallax("status_update"), `{"type":"status_update","payload":{"maxTasks":0}}`},
		"capabilities alone":                     {schemas.Parallax("status_update"), `{"type":"status_update","payload":{"capabilities":[]}}`},
		"keys and values with escapes":           {schemas.Parallax("task_request"), `{"\u0074ype":"task\u005frequest","payload":{"\u0069nput":"x","priority":"h\u0069gh"}}`},
		"white space everywhere":                 {schemas.Parallax("register"), " {\n\"type\" : \"register\" ,\t\"payload\" : { \"capabilities\" : [ \"a\" , \"b\" ] } }\r\n"},
		"a number beyond a float, kept as it is": {schemas.Parallax("task_result"), `{"type":"task_result","payload":{"taskId":"t","result":[1e999]}}`},

		"an envelope of id and kind alone":  {schemas.ACP("ping"), `{"id":"1","kind":"ping"}`},
		"null for a reference":              {schemas.ACP("query"), `{"id":"1","kind":"query","ref":null,"payload":{"question":"x"}}`},
		"a structured question":             {schemas.ACP("query"), `{"id":"1","kind":"query","payload":{"question":{"about":"swimming"}}}`},
		"a context that is a string":        {schemas.ACP("delegate"), `{"id":"1","kind":"delegate","payload":{"task":"x","context":"y"}}`},
		"a version of 1.0":                  {schemas.ACP("ping"), `{"v":1.0,"id":"1","kind":"ping"}`},
		"an error that answers nothing":     {schemas.ACP("error"), `{"id":"1","kind":"error","payload":{"code":"c","message":"m"}}`},
		"capabilities that nobody asked":    {schemas.ACP("capabilities"), `{"id":"1","kind":"capabilities","payload":{}}`},
		"a kind and payload nobody knows":   {schemas.ACPEnvelope(), `{"id":"1","kind":"sync","payload":[1,2]}`},
		"an answer by the old name of ref":  {schemas.ACP("response"), `{"id":"1","kind":"response","reply_to":"0","payload":{"summary":"x"}}`},
		"a time with a fraction":            {schemas.ACP("ping"), `{"id":"1","kind":"ping","ts":1771108000000.25}`},
		"a cancellation without its reason": {schemas.ACP("cancel"), `{"id":"1","kind":"cancel","ref":"0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.schema.Validate([]byte(c.text)); err != nil {
				t.Errorf("got %v, want it taken", err)
			}
		})
	}
}

func TestAViolationRepeatsLittleOfWhatThePeerSent(t *testing.T) {
	long := strings.Repeat("é", 10_000)
	err := schemas.ACP("result").Validate([]byte(`{"id":"1","kind":"result","ref":"0","payload":{"status":"` + long + `"}}`))
	if err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "é...") {
		t.Errorf("got %.300v, want a short line that shows the cut", err)
	}
}

func TestAMessageWithoutFaultCostsNoAllocation(t *testing.T) {
	for _, s := range schemas.Samples(t) {
		message, err := strictjson.Parse(s.Data, strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := testing.AllocsPerRun(100, func() { _ = s.Schema.Check(message) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", s.Name, got)
		}
	}
}
