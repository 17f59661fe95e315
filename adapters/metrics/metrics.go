package metrics

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/quota"
)

// component reads what is for everybody who may read the metrics.
var component = hub.ComponentIdentity("metrics", "").Principal

// Traffic counts the messages of a type in one direction, and the total time in seconds that
// the hub took to process them, if that was measured.
type Traffic struct {
	Direction, Type string
	Messages        uint64
	Seconds         float64
}

// Child is an agent or a pack that the hub runs itself.
type Child struct {
	// Kind is "agent" or "pack".
	Kind, Name string
	core.Child
}

// Options are what a scrape reports besides the state of the hub.
type Options struct {
	// Version is the version of the program.
	Version string
	// Children returns the states of the agents and packs that the hub runs itself; nil means
	// none.
	Children func() []Child
	// Translations are those of all dialects; without that of a dialect no losses are reported
	// for it.
	Translations core.Translations
	// Parallax returns the traffic with Parallax agents; nil means none.
	Parallax func() []Traffic
}

// New returns the handler of /metrics. It is safe for concurrent use.
func New(h *hub.Hub, opts Options) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(
		&collector{hub: h, opts: opts},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 4, ErrorHandling: promhttp.ContinueOnError})
}

// The metrics of the hub, then those of the Parallax page "Control Plane Metrics".
var (
	build     = describe("dragoman_build_info", "The program: always 1.", "version")
	agents    = describe("dragoman_agents", "Connected agents.", "dialect", "state")
	running   = describe("dragoman_tasks_running", "Tasks that agents work on.")
	queued    = describe("dragoman_tasks_queued", "Tasks that wait for an agent.")
	events    = describe("dragoman_events_total", "Events that the hub counts: see the operations page.", "name")
	failing   = describe("dragoman_journal_failing", "1 while the journal does not accept records, else 0.")
	active    = describe("dragoman_agent_active_tasks", "Tasks that an agent works on.", "agent")
	missed    = describe("dragoman_agent_missed_heartbeats", "Consecutive heartbeats that an agent has missed, once it has sent one.", "agent")
	vital     = describe("dragoman_agent_vital", "Metrics that an agent reports in its heartbeats.", "agent", "metric")
	up        = describe("dragoman_child_ready", "Whether an agent or a pack that the hub runs itself is ready.", "kind", "name", "state")
	restarts  = describe("dragoman_child_restarts", "How often it was started again.", "kind", "name")
	held      = describe("dragoman_memory_held_bytes", "Bytes that the hub holds for its peers, of its memory budget.", "kind")
	budget    = describe("dragoman_memory_limit_bytes", "The memory budget: new work is refused above it; 0 is no limit.")
	tokens    = describe("dragoman_usage_tokens_total", "Tokens that the tasks of this hub have used, as far back as usage is kept.", "kind")
	cost      = describe("dragoman_usage_cost_total", "What they cost, as far as it is known.", "currency")
	unpriced  = describe("dragoman_usage_unpriced_total", "Reports of usage whose cost is not known.")
	refused   = describe("dragoman_memory_refused_total", "New work refused because the memory budget was full.")
	quotas    = describe("dragoman_quota_refused_total", "Calls and connections refused because of a quota of their principal.", "quota")
	connected = describe("parallax_agents_connected", "Connected agents that have a capability.", "capability")
	messages  = describe("parallax_ws_messages_total", "Messages exchanged with Parallax agents.", "direction", "type")
	latency   = describe("parallax_ws_message_latency_seconds", "Time that the hub took to process a received message.", "type")
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
	for _, d := range append([]*prometheus.Desc{
		build, agents, running, queued, events, failing, active, missed, vital, up, restarts, held, budget, tokens, cost, unpriced, refused, quotas, losses, connected, messages, latency,
	}, waiting...) {
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
	totals := c.hub.Totals(component)
	gauge(running, float64(totals.Active))
	gauge(queued, float64(totals.Queued))
	counts := c.hub.Counters()
	for _, name := range watched {
		counts[name] += 0
	}
	for name, n := range counts {
		counter(events, float64(n), name)
	}
	gauge(failing, number(c.hub.JournalHealth().Err != nil))
	c.collectWaiting(gauge)
	c.collectLosses(counter)
	c.collectAgents(gauge)
	m := c.hub.Memory()
	for _, k := range memory.Kinds() {
		gauge(held, float64(m.HeldAs(k)), k.String())
	}
	gauge(budget, float64(m.Limit()))
	counter(refused, float64(m.Refused()))
	c.collectUsage(counter)
	for _, k := range quota.Kinds() {
		counter(quotas, float64(c.hub.Quotas().Refused(k)), k.String())
	}
	if c.opts.Children != nil {
		for _, child := range c.opts.Children() {
			gauge(up, number(child.State == core.ChildReady), child.Kind, label(child.Name), child.State.String())
			gauge(restarts, float64(child.Restarts), child.Kind, label(child.Name))
		}
	}
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

// collectUsage reports what the tasks of the hub have used.
func (c *collector) collectUsage(counter func(*prometheus.Desc, float64, ...string)) {
	spent := c.hub.Spent()
	u := spent.Tokens
	for kind, n := range map[string]int64{"input": u.Input, "output": u.Output, "thinking": u.Thinking, "cache_read": u.CacheRead, "cache_write": u.CacheWrite} {
		counter(tokens, float64(n), kind)
	}
	counter(cost, float64(spent.Cost.Nanos)/core.NanosPerOne, c.hub.Currency())
	counter(unpriced, float64(spent.Unpriced))
}

// watched are the counters that alert rules watch. They are reported before there is anything to
// count: Prometheus sees no increase in a counter that begins with its first event.
var watched = []string{
	"agent.overdue", "audit.missing", "audit.refused", "auth.refused", "cancel.unanswered", "journal.refused", "refused.overloaded", "refused.question", "task.memory",
}

// number is 1 for yes and 0 for no.
func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// label returns a name that an agent chose, as valid UTF-8, which Prometheus requires.
func label(name string) string { return strings.ToValidUTF8(name, "\ufffd") }

// collectAgents reports the connected agents.
func (c *collector) collectAgents(gauge func(*prometheus.Desc, float64, ...string)) {
	type kind struct{ dialect, state string }
	kinds, byCapability := map[kind]int{}, map[string]int{}
	for _, a := range c.hub.Agents(component) {
		id := label(string(a.ID))
		kinds[kind{a.Dialect, a.Load.State.String()}]++
		seen := map[string]bool{}
		for _, capability := range a.Capabilities {
			capability = label(capability)
			if !seen[capability] {
				seen[capability] = true
				byCapability[capability]++
			}
		}
		gauge(active, float64(a.Load.Active), id)
		if v := a.Vitals; v != nil {
			gauge(missed, float64(v.Missed), id)
			vitals := map[string]float64{}
			for name, n := range v.Metrics {
				vitals[label(name)] = n
			}
			for name, n := range vitals {
				gauge(vital, n, id, name)
			}
		}
	}
	for k, n := range kinds {
		gauge(agents, float64(n), k.dialect, k.state)
	}
	for capability, n := range byCapability {
		gauge(connected, float64(n), capability)
	}
}
