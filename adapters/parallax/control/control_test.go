package control_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

func TestAnExecutionIsATaskOfTheHub(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		b := f.start(`{"capability":"shouting","input":{"content":"hello","n":1},"options":{"stream":true,"timeout":5000}}`)
		if want := "/api/executions/" + string(b.ID) + "/events/stream"; b.Status != "accepted" || b.StreamURL != want || b.WebhookConfigured {
			f.Errorf("got %+v, want it accepted, with the stream at %s", b, want)
		}
		e := f.execution(b.ID)
		if e.Status != "completed" || string(e.Result) != `"HELLO"` || e.AgentID != "shout" || !e.Metrics.Success || e.EndTime == nil || e.Error != "" {
			f.Errorf("got %+v, want HELLO from shout", e)
		}
		if task, err := f.hub.Task(f.Context(), core.Principal{ID: "local", Operator: true}, b.ID); err != nil || string(task.Request().Data) != `{"n":1}` {
			f.Errorf("got %v and %v, want the rest of the input as data", task, err)
		}
		if code, text := f.call("GET", "/api/executions/"+string(b.ID), "", "X-User", "eve"); code != 404 {
			f.Errorf("another user: got %d %s, want 404", code, text)
		}
	})
}

func TestAPatternNamesACapability(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		b := f.start(`{"patternName":"shouting","input":"hi"}`)
		if e := f.execution(b.ID); e.PatternName != "shouting" || string(e.Result) != `"HI"` {
			f.Errorf("got %+v, want HI and the pattern", e)
		}
	})
}

func TestExecutionsCanBeCancelledAndRetried(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		b := f.start(`{"agentId":"shout","input":"wait"}`)
		path := "/api/executions/" + string(b.ID)
		if e := get[execution](f, 200, "GET", path, ""); e.Status != "running" || e.EndTime != nil {
			f.Errorf("got %+v, want it running", e)
		}
		if code, text := f.call("POST", path+"/retry", ""); code != 409 {
			f.Errorf("retry while it runs: got %d %s, want 409", code, text)
		}
		get[struct{}](f, 200, "POST", path+"/cancel", "")
		if e := get[execution](f, 200, "GET", path, ""); e.Status != "cancelled" || e.Code != "CANCELLED" {
			f.Errorf("got %+v, want it cancelled", e)
		}
		if code, text := f.call("POST", path+"/cancel", ""); code != 409 {
			f.Errorf("second cancel: got %d %s, want 409", code, text)
		}
		again := get[accepted](f, 202, "POST", path+"/retry", "")
		if again.RetryOf != b.ID || again.ID == b.ID {
			f.Errorf("got %+v, want another execution with retryOf", again)
		}
		if e := f.execution(again.ID); e.Status != "running" {
			f.Errorf("got %+v, want it running again", e)
		}
	})
}

func TestAgentsAreListedAndFiltered(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		for query, want := range map[string]int{
			"": 1, "?capability=shouting": 1, "?capabilities=shouting,singing": 0, "?region=eu": 1, "?region=us": 0, "?status=connected": 1, "?status=disconnected": 0,
		} {
			list := get[struct {
				Agents       []agentView
				Count, Total int
				ByCapability map[string][]agentView
			}](f, 200, "GET", "/api/agents"+query, "")
			if len(list.Agents) != want || list.Count != want || list.Total != want || len(list.ByCapability["shouting"]) != want {
				f.Errorf("%q: got %+v, want %d", query, list, want)
			}
		}
		if a := get[agentView](f, 200, "GET", "/api/agents/shout", ""); a.Name != "Shout" || a.Status != "connected" || a.Source != "registry" {
			f.Errorf("got %+v, want the agent", a)
		}
		if code, text := f.call("GET", "/api/agents/nobody", ""); code != 404 || !strings.Contains(text, `"error":"Agent not found"`) {
			f.Errorf("got %d %s, want 404 with the text of Parallax", code, text)
		}
	})
}

func TestInvalidRequestsAreRefusedWithAReason(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		for body, want := range map[string]string{
			`{`:             "400 ",
			`{"input":"a"}`: "400 capability: missing",
			`{"agentId":"shout","capability":"shouting"}`:                                         "400 agentId and capability: send one of them",
			`{"capability":"singing","input":"a"}`:                                                "503 ",
			`{"capability":"shouting"}`:                                                           "400 input: missing; send what is asked",
			`{"capability":"shouting","input":null}`:                                              "400 input: missing; send what is asked",
			`{"agentId":"nobody","input":"a"}`:                                                    "404 ",
			`{"capability":"shouting","options":{"timeout":-1}}`:                                  "400 options.timeout: want 1 to",
			`{"capability":"shouting","options":{"credentials":{"type":"pat"}}}`:                  "400 options.credentials:",
			`{"capability":"shouting","webhook":{"url":"http://example.com"}}`:                    "400 webhook.url: want https",
			`{"capability":"shouting","webhook":{"url":"https://127.0.0.1/"}}`:                    "400 webhook.url: 127.0.0.1 is no address",
			`{"capability":"shouting","webhook":{"url":"https://a:b@example.com"}}`:               "400 webhook.url: no user",
			`{"capability":"shouting","webhook":{"url":"https://example.com","events":["born"]}}`: "400 webhook.events:",
		} {
			code, text := f.call("POST", "/api/executions", body)
			status, message, _ := strings.Cut(want, " ")
			if (map[int]string{400: "400", 404: "404", 503: "503"})[code] != status || !strings.Contains(text, `{"error":"`+message) {
				f.Errorf("%s: got %d %s, want %s", body, code, text, want)
			}
		}
		if code, _ := f.call("POST", "/api/executions", `{}`, "Content-Type", "text/plain"); code != 400 {
			f.Errorf("a form: got %d, want 400", code)
		}
		if code, _ := f.call("GET", "/api/patterns", ""); code != 404 {
			f.Errorf("patterns: got %d, want 404", code)
		}
		for request, want := range map[string]string{
			"DELETE /api/agents":          `{"error":"DELETE is not for /api/agents: use GET","code":"UNSUPPORTED"}`,
			"GET /api/executions":         `{"error":"GET is not for /api/executions: use POST","code":"UNSUPPORTED"}`,
			"GET /api/executions/x/retry": `{"error":"GET is not for /api/executions/x/retry: use POST","code":"UNSUPPORTED"}`,
		} {
			method, path, _ := strings.Cut(request, " ")
			if code, text := f.call(method, path, ""); code != 405 || strings.TrimSpace(text) != want {
				f.Errorf("%s: got %d %s, want 405 %s", request, code, text, want)
			}
		}
	})
	withControl(t, control.Options{Targets: webhook.TargetsNone}, func(f *fixture) {
		if code, text := f.call("POST", "/api/executions", `{"capability":"shouting","webhook":{"url":"https://example.com"}}`); code != 403 {
			f.Errorf("disabled webhooks: got %d %s, want 403", code, text)
		}
	})
}
