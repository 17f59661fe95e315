package control

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestAnExecutionIsATaskOfTheHub(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":{"content":"hello","n":1},"options":{"stream":true,"timeout":5000}}`)
		if want := "/api/executions/" + string(b.ID) + "/events/stream"; b.Status != "accepted" || b.StreamURL != want || b.WebhookConfigured {
			s.Errorf("got %+v, want it accepted, with the stream at %s", b, want)
		}
		e := get[execution](s, 200, "GET", "/api/executions/"+string(b.ID), "")
		if e.Status != statusCompleted || string(e.Result) != `"HELLO"` || e.AgentID != "shout" || !e.Metrics.Success || e.EndTime == nil || e.Error != "" {
			s.Errorf("got %+v, want HELLO of shout", e)
		}
		if task, err := s.hub.Task(s.Context(), core.Principal{ID: "local", Operator: true}, b.ID); err != nil || string(task.Request().Data) != `{"n":1}` {
			s.Errorf("got %v and %v, want the rest of the input as data", task, err)
		}
		if code, text := s.call("GET", "/api/executions/"+string(b.ID), "", "X-User", "eve"); code != 403 {
			s.Errorf("somebody else: got %d %s, want 403", code, text)
		}
	})
}

func TestAPatternIsTheCapabilityOfItsName(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"patternName":"shouting","input":"hi"}`)
		if e := get[execution](s, 200, "GET", "/api/executions/"+string(b.ID), ""); e.PatternName != "shouting" || string(e.Result) != `"HI"` {
			s.Errorf("got %+v, want HI, of the pattern", e)
		}
	})
}

func TestCancelCancelsAndRetryRetries(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"agentId":"shout","input":"wait"}`)
		path := "/api/executions/" + string(b.ID)
		if e := get[execution](s, 200, "GET", path, ""); e.Status != statusRunning || e.EndTime != nil {
			s.Errorf("got %+v, want it running", e)
		}
		if code, text := s.call("POST", path+"/retry", ""); code != 409 {
			s.Errorf("retried while it runs: got %d %s, want 409", code, text)
		}
		get[struct{}](s, 200, "POST", path+"/cancel", "")
		if e := get[execution](s, 200, "GET", path, ""); e.Status != statusCancelled || e.Code != "CANCELLED" {
			s.Errorf("got %+v, want it cancelled", e)
		}
		if code, text := s.call("POST", path+"/cancel", ""); code != 409 {
			s.Errorf("cancelled twice: got %d %s, want 409", code, text)
		}
		again := get[begun](s, 202, "POST", path+"/retry", "")
		if again.RetryOf != b.ID || again.ID == b.ID {
			s.Errorf("got %+v, want another execution, of the first", again)
		}
		if e := get[execution](s, 200, "GET", "/api/executions/"+string(again.ID), ""); e.Status != statusRunning {
			s.Errorf("got %+v, want it running again", e)
		}
	})
}

func TestTheEventsOfAnExecutionAreStreamedToTheirEndAndResumed(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
		b := get[begun](s, 202, "POST", "/api/executions", `{"capability":"shouting","input":"hello"}`)
		path := "/api/executions/" + string(b.ID) + "/events"
		_, text := s.call("GET", path+"/stream", "")
		var got, ids []string
		for line := range strings.Lines(text) {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				got = append(got, strings.TrimSpace(name))
			}
			if id, ok := strings.CutPrefix(line, "id: "); ok {
				ids = append(ids, strings.TrimSpace(id))
			}
		}
		want := []string{"connected", "started", "agent_started", "progress", "agent_completed", "completed"}
		if diff := cmp.Diff(want, got); diff != "" {
			s.Errorf("the stream differs (-want +got):\n%s", diff)
		}
		if _, rest := s.call("GET", path+"/stream", "", "Last-Event-ID", ids[1]); strings.Contains(rest, "agent_started") || !strings.Contains(rest, "event: completed") {
			s.Errorf("resumed behind %s: got %s, want the rest", ids[1], rest)
		}
		if code, _ := s.call("GET", path+"/stream", "", "Last-Event-ID", ids[len(ids)-1]); code != 204 {
			s.Errorf("resumed behind the end: got %d, want 204", code)
		}
		if all := get[struct{ Events []eventView }](s, 200, "GET", path, ""); len(all.Events) != len(want)-1 {
			s.Errorf("got %d events, want %d", len(all.Events), len(want)-1)
		}
	})
}

func TestAgentsAreListedAndFiltered(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
		for query, want := range map[string]int{
			"": 1, "?capability=shouting": 1, "?capabilities=shouting,singing": 0, "?region=eu": 1, "?region=us": 0, "?status=connected": 1, "?status=disconnected": 0,
		} {
			list := get[struct {
				Agents       []agentView
				Count, Total int
				ByCapability map[string][]agentView
			}](s, 200, "GET", "/api/agents"+query, "")
			if len(list.Agents) != want || list.Count != want || list.Total != want || len(list.ByCapability["shouting"]) != want {
				s.Errorf("%q: got %+v, want %d", query, list, want)
			}
		}
		if a := get[agentView](s, 200, "GET", "/api/agents/shout", ""); a.Name != "Shout" || a.Status != connected || a.Source != "registry" {
			s.Errorf("got %+v, want the agent", a)
		}
		if code, text := s.call("GET", "/api/agents/nobody", ""); code != 404 || !strings.Contains(text, `"error":"Agent not found"`) {
			s.Errorf("got %d %s, want 404 in the words of Parallax", code, text)
		}
	})
}

func TestWhatCannotBeIsRefusedWithWhatToChange(t *testing.T) {
	onStage(t, Options{}, func(s *stage) {
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
			code, text := s.call("POST", "/api/executions", body)
			status, words, _ := strings.Cut(want, " ")
			if (map[int]string{400: "400", 404: "404", 503: "503"})[code] != status || !strings.Contains(text, `{"error":"`+words) {
				s.Errorf("%s: got %d %s, want %s", body, code, text, want)
			}
		}
		if code, _ := s.call("POST", "/api/executions", `{}`, "Content-Type", "text/plain"); code != 400 {
			s.Errorf("a form: got %d, want 400", code)
		}
		if code, _ := s.call("GET", "/api/patterns", ""); code != 404 {
			s.Errorf("patterns: got %d, want 404", code)
		}
		for request, want := range map[string]string{
			"DELETE /api/agents":          `{"error":"DELETE is not for /api/agents: use GET","code":"UNSUPPORTED"}`,
			"GET /api/executions":         `{"error":"GET is not for /api/executions: use POST","code":"UNSUPPORTED"}`,
			"GET /api/executions/x/retry": `{"error":"GET is not for /api/executions/x/retry: use POST","code":"UNSUPPORTED"}`,
		} {
			method, path, _ := strings.Cut(request, " ")
			if code, text := s.call(method, path, ""); code != 405 || strings.TrimSpace(text) != want {
				s.Errorf("%s: got %d %s, want 405 %s", request, code, text, want)
			}
		}
	})
	onStage(t, Options{Targets: TargetsNone}, func(s *stage) {
		if code, text := s.call("POST", "/api/executions", `{"capability":"shouting","webhook":{"url":"https://example.com"}}`); code != 403 {
			s.Errorf("webhooks that are turned off: got %d %s, want 403", code, text)
		}
	})
}

func TestWhatIsNoLongerKeptOfAnExecutionIsSaidToBeMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, hub: coretest.NewHub(t, hub.Options{
			Journal: journal.NewMemory(journal.Retention{Bytes: 20_000}), Limits: hub.Limits{FinishedTasks: 1},
		})}
		operator := core.Principal{ID: "local", Operator: true}
		s.control = New(s.hub, Options{Targets: TargetsNone, Principal: func(*http.Request) core.Principal { return operator }})
		agent, asker := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), s.hub.Connect(hub.Identity{Principal: operator})
		defer agent.Close(nil)
		defer asker.Close(nil)
		if err := agent.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		long, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			if err := agent.Report(long.ID(), core.Thinking{Text: strings.Repeat("x", 900)}, nil); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // each is recorded by itself
		}
		if err := agent.Report(long.ID(), core.Done{}, nil); err != nil {
			t.Fatal(err)
		}
		for range 10 { // it leaves the memory once others have ended
			other, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "another"}, hub.OpenOptions{Unwatched: true})
			if err != nil || agent.Report(other.ID(), core.Done{}, nil) != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // until all is recorded
		}
		_, text := s.call("GET", "/api/executions/"+string(long.ID())+"/events/stream", "")
		if !strings.Contains(text, "event: gap\n") || !strings.Contains(text, `"from":1,`) || !strings.Contains(text, "event: completed") {
			t.Errorf("got %.600s, want a gap, and the rest", text)
		}
		if _, text := s.call("GET", "/api/executions/"+string(long.ID())+"/events", ""); !strings.Contains(text, `"type":"gap"`) {
			t.Errorf("got %.300s, want a gap among the events", text)
		}
	})
}
