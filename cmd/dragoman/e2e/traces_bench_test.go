package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkQuestionTraced asks hubs in processes of their own in turns, one question at a time, over
// REST and as a Coven client; a Coven agent answers. One hub traces every question, one has a collector
// and traces none, one has no collector. All have a journal.
// -bench.base adds a hub of another build, without a collector.
func BenchmarkQuestionTraced(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(collector.Close)
	const plain = "limits: {history_bytes: 0}\n"
	to := plain + "traces: {endpoint: " + collector.URL + ", ratio: "
	for name, connect := range map[string]func(*testing.B, *asked) func(context.Context) error{"rest": askREST, "coven": askCoven} {
		b.Run(name, func(b *testing.B) {
			hubs := []*asked{
				{name: "all", benchHub: startBenchHub(b, "", to+"1}\n")},
				{name: "none", benchHub: startBenchHub(b, "", to+"0}\n")},
				{name: "off", benchHub: startBenchHub(b, "", plain)},
			}
			if *benchBase != "" {
				hubs = append(hubs, &asked{name: "base", benchHub: startBenchHub(b, *benchBase, plain)})
			}
			for _, h := range hubs {
				h.join(b, "")
				h.ask = connect(b, h)
			}
			inTurns(b, hubs)
		})
	}
}
