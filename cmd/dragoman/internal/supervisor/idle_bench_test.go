package supervisor_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// editorAgent is a shell script that speaks as much of the editor's protocol as an idle agent.
const editorAgent = `read -r line; printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}}'; exec cat >/dev/null`

// BenchmarkIdleChildren reports what an idle child costs the hub, beside its process.
func BenchmarkIdleChildren(b *testing.B) {
	const children = 200
	for b.Loop() {
		h := coretest.NewHub(b, hub.Options{})
		log := slog.New(slog.DiscardHandler)
		s := supervisor.New(supervisor.Options{
			Hub: h, Log: log, Launcher: &supervisor.Launcher{Log: log},
			Records: func(string) core.RecordLog { return nil },
			Tools:   func(*hub.Session) (string, string, func()) { return "", "", func() {} },
		})
		before := coretest.Resident()
		var agents config.Agents
		for i := range children {
			agents = append(agents, config.Agent{Name: fmt.Sprintf("a%d", i), Dialect: config.SpeaksEditor, Process: config.Process{Command: []string{"sh", "-c", editorAgent}}})
		}
		s.Apply(agents, nil)
		for _, a := range agents {
			for end := time.Now().Add(watchdog); ; <-time.After(time.Millisecond) {
				if status, ok := h.Agent(core.Principal{Operator: true}, core.AgentID(a.Name)); ok && status.Child.State == core.ChildReady {
					break
				} else if time.Now().After(end) {
					b.Fatalf("agent %s is %+v, want it ready", a.Name, status.Child)
				}
			}
		}
		b.ReportMetric(float64(coretest.Resident()-before)/children, "B/child")
		s.Close()
	}
}
