package pi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// metrics are the members of get_metrics that tests use.
type metrics struct {
	CommandsRejected map[string]int64
	Stores           struct {
		Replay      struct{ InFlightRejections int64 }
		ExtensionUI struct{ PendingCount, MaxPendingRequests, RejectedCount int }
	}
	Metrics struct {
		Counters     map[string]int64
		RecentEvents []recentEvent
	}
}

type recentEvent struct {
	Name, Type string
	Tags       map[string]string
	Timestamp  int64 // in milliseconds
}

// maxRecent is the number of recent events in get_metrics.
const maxRecent = 100

func metricsOf(c *testClient) metrics {
	c.t.Helper()
	var m metrics
	if err := json.Unmarshal(c.ok(`{"type":"get_metrics"}`).Data, &m); err != nil {
		c.t.Fatal(err)
	}
	return m
}

func TestTheMetricsHaveTheLatestEventsOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{SessionLifetime: time.Hour})
		c := dial(t, s, pi.ConnOptions{})
		c.ok(`{"id":"1","type":"create_session","sessionId":"s"}`)
		c.ok(`{"id":"1","type":"create_session","sessionId":"s"}`) // a replay creates nothing
		c.ok(`{"type":"create_session","sessionId":"t"}`)
		time.Sleep(time.Minute)
		c.ok(`{"type":"delete_session","sessionId":"s"}`)
		time.Sleep(time.Hour)
		began := time.Now().Add(-61 * time.Minute).UnixMilli()
		event := func(name string, after time.Duration) recentEvent {
			return recentEvent{"pi_server_event_" + name, "event", map[string]string{"event": name}, began + after.Milliseconds()}
		}
		want := []recentEvent{
			event("server_ready", 0), event("session_created", 0), event("session_created", 0),
			event("session_deleted", time.Minute), event("session_deleted", time.Hour),
		}
		if d := cmp.Diff(want, metricsOf(c).Metrics.RecentEvents); d != "" {
			t.Errorf("recent events (-want +got):\n%s", d)
		}
		for i := range maxRecent {
			c.ok(fmt.Sprintf(`{"type":"create_session","sessionId":"%d"}`, i))
			c.ok(fmt.Sprintf(`{"type":"delete_session","sessionId":"%d"}`, i))
		}
		if got := metricsOf(c).Metrics.RecentEvents; len(got) != maxRecent || got[maxRecent-1].Tags["event"] != "session_deleted" {
			t.Errorf("recent events: got %d, want the %d latest", len(got), maxRecent)
		}
	})
}

func TestEveryLimitIsCountedInTheMetrics(t *testing.T) {
	h, s := newServer(t, pi.Options{
		Commands:        command.Options{MaxPending: 2, MaxInFlight: 2, Rates: command.Rates{Client: 17, Session: 3, Server: -1, Answers: 1}},
		MaxMessageBytes: 300, MaxSessions: 1, MaxConnections: 2, Breakers: command.Breakers{Agent: command.Breaker{Failures: 1}},
	})
	joinAgent(t, h, core.Card{ID: "bad"}, failWith(core.CodeInternal))
	w := newHeldAgent()
	mute := joinAgent(t, h, core.Card{ID: "mute"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	busy := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})

	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	go func() { s.Serve(t.Context(), hubs, pi.ConnOptions{}) }()
	if _, err := pitest.Connect(t.Context(), clients, nil); err == nil {
		t.Error("a connection above the limit: got no error, want one")
	}
	c.send(`{"type":"list_sessions","x":"` + strings.Repeat("x", 300) + `"}`)
	c.until("Message size")
	c.ok(`{"type":"create_session","sessionId":"s","agent":"bad"}`)
	c.ok(`{"type":"switch_session","sessionId":"s"}`)
	busy.ok(`{"type":"create_session","sessionId":"m","agent":"mute"}`)
	c.fails(`{"type":"create_session","sessionId":"t"}`, "Session limit reached (1 sessions)")
	c.ok(askCommand)
	c.fails(askCommand, "Circuit breaker open: Circuit open for bad (recovery in 30s)")
	c.ok(`{"type":"get_state","sessionId":"s"}`)
	c.fails(`{"type":"get_state","sessionId":"s"}`, "Rate limit exceeded (3 commands/minute)")
	const reply = `{"type":"extension_ui_response","sessionId":"x","requestId":"r","response":{"method":"cancelled"}}`
	c.fails(reply, "Session x not found")
	c.fails(reply, "Extension UI response rate limit exceeded (1 responses/minute)")
	busy.send(`{"id":"p","type":"prompt","sessionId":"m","message":"x"}`)
	busy.send(`{"id":"q","type":"set_session_name","sessionId":"m","name":"x"}`)
	busy.until("command_accepted", `"q"`)
	busy.fails(`{"type":"list_sessions"}`, "Too many pending commands for this connection (max 2)")
	c.fails(`{"type":"list_sessions"}`, "Server busy - too many concurrent commands. Please retry.")
	busy.Close()
	ann := dial(t, s, pi.ConnOptions{Transport: pi.Stdio, Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.fails(`{"type":"list_sessions"}`, "Server busy - too many concurrent commands. Please retry.")
	mute.report(<-w.tasks, core.Done{}) // makes room for get_metrics
	ann.until("command_finished", `"q"`)
	for c.do(`{"type":"health_check"}`).Success {
	}
	ann.ok(`{"type":"abort","sessionId":"m"}`)

	got := metricsOf(ann)
	want := map[string]int64{
		"sessionLimit": 1, "messageSize": 1, "rateLimit": 1, "globalRateLimit": 1, "connectionLimit": 1, "extensionUIResponseRateLimit": 1,
		"pendingLimit": 1, "inFlightLimit": 2, "circuitOpen": 1,
	}
	if d := cmp.Diff(want, got.CommandsRejected); d != "" {
		t.Errorf("rejections (-want +got):\n%s", d)
	}
	if n := got.Stores.Replay.InFlightRejections; n != 2 {
		t.Errorf("inFlightRejections: got %d, want 2", n)
	}
	if n := got.Stores.ExtensionUI.MaxPendingRequests; n != h.Limits().Questions {
		t.Errorf("maxPendingRequests: got %d, want %d", n, h.Limits().Questions)
	}
	for name, why := range map[string]string{
		"sessions": "sessionLimit", "size": "messageSize", "rate": "rateLimit", "global_rate": "globalRateLimit", "connections": "connectionLimit",
		"answer_rate": "extensionUIResponseRateLimit", "pending": "pendingLimit", "in_flight": "inFlightLimit", "breaker": "circuitOpen",
	} {
		if n := got.Metrics.Counters["pi_server_rejected_"+name]; n != want[why] || n == 0 {
			t.Errorf("%s: got %d, want %d", name, n, want[why])
		}
	}
}

func TestQuestionsBeyondTheLimitOfTheHubAreInTheMetrics(t *testing.T) {
	h, s := newServerOn(t, hub.Options{Limits: hub.Limits{Questions: 1}}, pi.Options{})
	fault := make(chan *core.Fault, 2)
	a := joinAgent(t, h, core.Card{ID: "a", Capabilities: []string{"ui"}}, func(_ *testAgent, b hub.Batch) {
		if b.Tool != nil {
			fault <- b.Tool.Fault
		}
	})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"health_check"}`) // the session listens after this response
	for _, id := range []string{"1", "2"} {
		a.CallTool(id, "ask_user", []byte(`{"question":"Which?"}`))
	}
	if f := <-fault; f == nil || f.Code != core.CodeOverloaded {
		t.Fatalf("the second question: got %v, want it refused", f)
	}
	c.until("extension_ui_request")
	if got := metricsOf(c).Stores.ExtensionUI; got.PendingCount != 1 || got.MaxPendingRequests != 1 || got.RejectedCount != 1 {
		t.Errorf("got %+v, want one open, a maximum of one, one refused", got)
	}
}
