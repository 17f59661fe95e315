package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// Each hub is drained and started again, one after the other, while agents and clients of every
// dialect work. What an agent was given is answered, and whoever comes is told where to go.
func TestARollingUpgradeLosesNothing(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	load := startPatientLoad(all, watchdog) // an agent may not leave with what it was given
	t.Cleanup(func() { load.stop() })
	all.untilAgents(t)
	for i, h := range all {
		load.untilTold(t, 20)
		if code, out, stderr := run(t, "drain", "--hub", h.URL); code != command.ExitDone || !strings.Contains(out, "the hub is empty") {
			t.Errorf("dragoman drain of %s: got %d, %q and %q, want the hub empty", h.name, code, out, stderr)
		}
		for _, o := range all {
			o.untilHubs(o.name+" sees that "+h.name+" drains", func(hubs []cluster.Hub) bool { return stateOf(hubs, h.name).State == cluster.Draining })
		}
		if h.ready() {
			t.Errorf("hub %s is drained: got it ready, want it not", h.name)
		}
		h.isEmpty()
		h.refusesEverybody(all[(i+1)%3], all[(i+2)%3])
		load.untilTold(t, 20)
		if code := h.interrupt(); code != 0 {
			t.Errorf("stopping hub %s, which is drained: got the exit code %d, want 0", h.name, code)
		}
		h.start()
		all.untilAllUp()
		all.untilAgents(t)
	}
	load.untilTold(t, 20)
	until := time.Now() // then agents leave in the middle of their work
	if dialects := load.settle(t); len(dialects) < 8 {
		t.Errorf("got answers in %d dialects, want all 8: %v", len(dialects), dialects)
	}
	all[0].lostNothing(until)
}

// isEmpty checks that a drained hub has neither tasks nor agents.
func (h *clusterHub) isEmpty() {
	h.t.Helper()
	var v struct {
		Draining string
		Cluster  struct{ Hubs []cluster.Hub }
	}
	if err := h.Get(h.t.Context(), "/v1/hub", &v); err != nil {
		h.t.Error(err)
	}
	if own := stateOf(v.Cluster.Hubs, h.name); v.Draining == "" || own.Tasks != 0 || own.Agents != 0 {
		h.t.Errorf("the drained hub %s says %q and %+v of itself, want that it drains and has no tasks and no agents", h.name, v.Draining, own)
	}
}

// refusesEverybody checks that whoever comes is told which hubs to go to, in each dialect.
func (h *clusterHub) refusesEverybody(others ...*clusterHub) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), watchdog)
	defer cancel()
	refused := func(dialect, told string) {
		h.t.Helper()
		for _, o := range others {
			if name := o.name + " at " + o.URL; !strings.Contains(told, name) {
				h.t.Errorf("%s at the drained hub %s: got %q, want that it names hub %s", dialect, h.name, told, name)
			}
		}
	}
	for dialect, ask := range map[string]func(context.Context, *clusterHub, string, string) (string, error){"REST": askRESTAt, "A2A": askA2AAt, "MCP": askMCPAt} {
		_, err := ask(ctx, h, "native-0", "anything")
		refused(dialect, fmt.Sprint(err))
	}
	coven := service.Joins()["coven"](ctx, client.Hub{GRPC: h.grpc}, core.Card{ID: "late"}, answerSlowly, func(client.AskFunc) {}, slog.New(slog.DiscardHandler))
	refused("Coven", fmt.Sprint(coven))
	refused("native", h.saysUntilTheEnd(ctx, h.URL+"/ws/native?agent_id=late", ""))
	refused("Parallax", h.saysUntilTheEnd(ctx, h.URL+"/ws/agent", `{"type":"register","id":"r","payload":{"capabilities":["x"]}}`))
	refused("ACP", h.saysUntilTheEnd(ctx, h.URL+"/ws/acp", ""))
	refused("pi", h.saysUntilTheEnd(ctx, "http://"+h.pi, ""))
}

// saysUntilTheEnd sends a frame, unless it is "", and returns what the hub says until it closes the
// connection, with the reason of that.
func (h *clusterHub) saysUntilTheEnd(ctx context.Context, url, frame string) string {
	h.t.Helper()
	conn, resp, err := websocket.Dial(ctx, url, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-Id": {"late"}}})
	if err != nil {
		h.t.Fatalf("%s: %v", url, err)
	}
	if resp.Body != nil {
		resp.Body.Close()
	}
	defer conn.CloseNow()
	if frame != "" {
		if err := conn.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			h.t.Fatalf("%s: %v", url, err)
		}
	}
	var all strings.Builder
	for {
		_, text, err := conn.Read(ctx)
		if err != nil {
			return all.String() + err.Error()
		}
		all.Write(text)
	}
}

func askRESTAt(ctx context.Context, h *clusterHub, to, key string) (string, error) {
	var task struct{ Answer struct{ Text string } }
	err := h.Post(ctx, "/v1/tasks?wait=true", map[string]string{"to": to, "content": key}, &task)
	return task.Answer.Text, err
}

// lostNothing checks that no task of the cluster that ended until then failed because of its hub or its
// connection once an agent had it.
func (h *clusterHub) lostNothing(until time.Time) {
	h.t.Helper()
	var failed []core.TaskID
	forwards := map[core.TaskID]bool{}
	h.tasks("failed", func(id core.TaskID, content string) {
		failed = append(failed, id)
		forwards[id] = strings.HasPrefix(content, "forward ")
	})
	why := map[string]int{}
	for _, id := range failed {
		var task struct {
			Agent   core.AgentID
			EndedAt time.Time `json:"ended_at"`
			Answer  struct{ Fault core.Fault }
		}
		if err := h.Get(h.t.Context(), "/v1/tasks/"+string(id), &task); err != nil {
			h.t.Fatal(err)
		}
		if task.EndedAt.After(until) {
			continue
		}
		f := task.Answer.Fault
		if forwards[id] && strings.Contains(f.Message, "is draining and takes nothing new") {
			continue // its agent has asked such an agent in its turn, and was refused
		}
		why[fmt.Sprintf("given to an agent: %t, %s", task.Agent != "", f.Code)]++
		if task.Agent != "" && f.Code == core.CodeUnreachable || strings.Contains(f.Message, neverStored) {
			h.t.Errorf("task %s of agent %q: got %v, want its answer", id, task.Agent, &f)
		}
	}
	h.t.Logf("of the tasks that failed: %v", why)
}
