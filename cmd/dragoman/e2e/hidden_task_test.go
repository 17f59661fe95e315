package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// Whoever has no right on a task is told at every door what it would be told of none: carol names a task of alice, and
// david one that never was.
func TestATaskOfSomebodyElseIsAnsweredAsOneThatIsNotThere(t *testing.T) {
	t.Parallel()
	h := newHidden(t)
	none := *h
	none.task = core.TaskID("01900000-0000-7000-8000-000000000000")
	compare := func(name string, read func(v visit) string) {
		t.Helper()
		theirs, absent := blurred(read(visit{h, t, "carol"})), blurred(read(visit{&none, t, "david"}))
		if diff := cmp.Diff(absent, theirs); diff != "" {
			t.Errorf("%s: what one is told of a task of somebody else differs from one that is not there (-not there +somebody else's)\n%.2000s", name, diff)
		}
	}
	for _, e := range endpointsOf(t, h.testHub) {
		name := nameOfEndpoint(e)
		s := hiddenSurfaces[name]
		switch {
		case s.because != "", strings.HasPrefix(name, "/coven.ClientService/"), strings.HasPrefix(name, "/parallax."): // they name no task
		case s.read != nil:
			compare(name, func(v visit) string { return s.read(v, misspelt) })
		case strings.Contains(name, "/tasks/{id}"):
			compare(name, func(v visit) string { return v.request(name, misspelt) })
		}
	}
	for _, call := range []string{
		`"act":"cancel","command":{"task":"TASK"}`, `"act":"inject","command":{"task":"TASK","context":{"content":"x"}}`, `"act":"decide","command":{"task":"TASK","decision":{"id":"k","approved":true}}`,
		`"act":"read","command":{"task":"TASK"}`, `"act":"readers","command":{"task":"TASK"}`, `"act":"call_tool","command":{"tool":"agent_cancel","input":{"task_id":"TASK"}}`,
	} {
		compare("native: "+call, func(v visit) string {
			return v.talk(v.url()+"/ws/native", http.Header{}, named(v, misspelt, `{"call":{"id":"c",`+call+`}}`), `"id":"c"`)
		})
	}
	for _, call := range []string{
		`"GetTask","params":{"id":"TASK"}`, `"CancelTask","params":{"id":"TASK"}`, `"SubscribeToTask","params":{"id":"TASK"}`,
		`"CreateTaskPushNotificationConfig","params":{"taskId":"TASK","url":"https://example.com/"}`, `"ListTaskPushNotificationConfigs","params":{"taskId":"TASK"}`,
		`"SendMessage","params":{"message":{"messageId":"m","taskId":"TASK","role":"ROLE_USER","parts":[{"text":"go"}]}}`,
	} {
		compare("A2A: "+call, func(v visit) string {
			return v.http(http.MethodPost, v.url()+"/a2a", named(v, misspelt, `{"jsonrpc":"2.0","id":1,"method":`+call+`}`)[0], "A2A-Version: 1.0")
		})
	}
}
