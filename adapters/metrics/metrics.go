package metrics

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dragoman-hub/dragoman/core/hub"
)

// Traffic is how many messages of a type went in one direction, and how long the hub
// took over them together, in seconds, where that was measured.
type Traffic struct {
	Direction, Type string
	Messages        uint64
	Seconds         float64
}

// Options say what a scrape tells beside what the hub knows.
type Options struct {
	// Version is that of the program.
	Version string
	// Parallax tells the traffic with Parallax agents; nil for none.
	Parallax func() []Traffic
}

// New returns the handler of /metrics. It may be called by several goroutines.
func New(h *hub.Hub, opts Options) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(
		&collector{hub: h, opts: opts},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
}

// The metrics: of the hub, then those of the page of Parallax, "Control Plane Metrics".
var (
	build     = describe("dragoman_build_info", "The program: always 1.", "version")
	agents    = describe("dragoman_agents", "Agents that are here.", "dialect", "state")
	running   = describe("dragoman_tasks_running", "Tasks that agents work on.")
	queued    = describe("dragoman_tasks_queued", "Tasks that wait for an agent.")
	events    = describe("dragoman_events_total", "What the hub counts: see the operations page.", "name")
	active    = describe("dragoman_agent_active_tasks", "Tasks that an agent works on.", "agent")
	missed    = describe("dragoman_agent_missed_heartbeats", "Heartbeats in a row that an agent has missed, once it has sent one.", "agent")
	vital     = describe("dragoman_agent_vital", "What an agent says of itself in its heartbeats.", "agent", "metric")
	connected = describe("parallax_agents_connected", "Connected agents that have a capability.", "capability")
	messages  = describe("parallax_ws_messages_total", "Messages exchanged with Parallax agents.", "direction", "type")
	latency   = describe("parallax_ws_message_latency_seconds", "How long the hub took over a message that it received.", "type")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// collector reads the hub for each scrape.
type collector struct {
	hub  *hub.Hub
	opts Options
}

// Describe implements [prometheus.Collector].
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{build, agents, running, queued, events, active, missed, vital, connected, messages, latency} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	gauge(build, 1, c.opts.Version)
	all := c.hub.Totals()
	gauge(running, float64(all.Active))
	gauge(queued, float64(all.Queued))
	for name, n := range c.hub.Counters() {
		counter(events, float64(n), name)
	}
	c.collectAgents(gauge)
	if c.opts.Parallax == nil {
		return
	}
	for _, t := range c.opts.Parallax() {
		counter(messages, float64(t.Messages), t.Direction, t.Type)
		if t.Seconds > 0 {
			ch <- prometheus.MustNewConstSummary(latency, t.Messages, t.Seconds, nil, t.Type)
		}
	}
}

// label is what an agent calls something, as Prometheus takes it.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// collectAgents tells of those who are here.
func (c *collector) collectAgents(gauge func(*prometheus.Desc, float64, ...string)) {
	type kind struct{ dialect, state string }
	kinds, able := map[kind]int{}, map[string]int{}
	for _, a := range c.hub.Agents(hub.Part("metrics", "").Principal) {
		id := label(string(a.ID))
		kinds[kind{a.Dialect, a.Load.State.String()}]++
		seen := map[string]bool{}
		for _, capability := range a.Capabilities {
			capability = label(capability)
			if !seen[capability] {
				seen[capability] = true
				able[capability]++
			}
		}
		gauge(active, float64(a.Load.Active), id)
		if v := a.Vitals; v != nil {
			gauge(missed, float64(v.Missed), id)
			named := map[string]float64{}
			for name, n := range v.Metrics {
				named[label(name)] = n
			}
			for name, n := range named {
				gauge(vital, n, id, name)
			}
		}
	}
	for k, n := range kinds {
		gauge(agents, float64(n), k.dialect, k.state)
	}
	for capability, n := range able {
		gauge(connected, float64(n), capability)
	}
}
