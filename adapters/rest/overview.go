package rest

import (
	"cmp"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// hubView is the overview of the hub.
type hubView struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	// Addresses are those for the sender.
	Addresses Addresses `json:"addresses,omitzero"`
	// Principal is the sender.
	Principal string `json:"principal"`
	// Draining is why the hub takes nothing new.
	Draining string `json:"draining,omitempty"`
	// Agents is how many agents are connected.
	Agents   int              `json:"agents"`
	Tasks    tasksView        `json:"tasks"`
	Journal  journalView      `json:"journal"`
	Cluster  *clusterView     `json:"cluster,omitempty"`
	Counters map[string]int64 `json:"counters"`
	// Losses are what dialects could not tell as it was; none for those who do not see all.
	Losses []hub.Loss `json:"losses"`
	Limits limitsView `json:"limits"`
}

// tasksView is the load of all agents.
type tasksView struct {
	Running int `json:"running"`
	Queued  int `json:"queued"`
}

// clusterView is the cluster as this hub sees it.
type clusterView struct {
	Hubs []cluster.Hub `json:"hubs"`
	// Stale says that this hub does not hear a majority of the others.
	Stale bool `json:"stale,omitempty"`
}

func (a *api) cluster() *clusterView {
	if a.opts.Cluster == nil {
		return nil
	}
	var v clusterView
	v.Hubs, v.Stale = a.opts.Cluster.Hubs()
	return &v
}

// journalView is the health of the journal.
type journalView struct {
	State string `json:"state"` // "ok" or "failing"
	// Reason is why the journal cannot be written and what to do, and Since when that began.
	Reason string     `json:"reason,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
}

func (a *api) journal() journalView {
	health := a.hub.JournalHealth()
	if health.Err == nil {
		return journalView{State: "ok"}
	}
	return journalView{State: "failing", Reason: health.Err.Error(), Since: &health.Since}
}

// limitsView are the limits of the hub and of this interface. Times are in milliseconds.
type limitsView struct {
	QueueLength       int    `json:"queue_length"`
	Retries           int    `json:"retries"`
	CancelGraceMS     int64  `json:"cancel_grace_ms"`
	SlotGraceMS       int64  `json:"slot_grace_ms"`
	Disconnect        string `json:"disconnect"`
	QuestionTimeoutMS int64  `json:"question_timeout_ms"`
	Questions         int    `json:"questions"`
	DeadlineMS        int64  `json:"deadline_ms"`
	SilenceMS         int64  `json:"silence_ms"`
	RequestBytes      int    `json:"request_bytes"`
	TaskBytes         int    `json:"task_bytes"`
	HistoryBytes      int    `json:"history_bytes"`
	Threads           int    `json:"threads"`
	FinishedTasks     int    `json:"finished_tasks"`
	FinishedBytes     int    `json:"finished_bytes"`
	UnrecordedBytes   int    `json:"unrecorded_bytes"`
	CauseMemoryMS     int64  `json:"cause_memory_ms"`
	BodyBytes         int    `json:"body_bytes"`
}

func (a *api) limits() limitsView {
	l := a.hub.Limits()
	return limitsView{
		QueueLength: l.QueueLength, Retries: max(0, l.Retries),
		CancelGraceMS: l.CancelGrace.Milliseconds(), SlotGraceMS: l.SlotGrace.Milliseconds(), Disconnect: l.Disconnect.String(),
		QuestionTimeoutMS: l.QuestionTimeout.Milliseconds(), Questions: l.Questions,
		DeadlineMS: a.opts.Deadline.Milliseconds(), SilenceMS: max(0, l.Silence).Milliseconds(),
		RequestBytes: l.RequestBytes, TaskBytes: l.TaskBytes, HistoryBytes: l.HistoryBytes, Threads: l.Threads,
		FinishedTasks: l.FinishedTasks, FinishedBytes: l.FinishedBytes, UnrecordedBytes: l.UnrecordedBytes,
		CauseMemoryMS: max(0, l.CauseMemory).Milliseconds(), BodyBytes: a.opts.MaxBodyBytes,
	}
}

func (a *api) getHub(c call) error {
	totals := a.hub.Totals(c.from)
	v := hubView{ID: a.hub.ID(), Version: a.opts.Version, Addresses: a.opts.Addresses(c.r), Principal: c.from.ID, Draining: a.hub.Draining(), Agents: totals.Agents, Journal: a.journal(), Cluster: a.cluster(), Counters: map[string]int64{}, Losses: []hub.Loss{}, Limits: a.limits()}
	if a.opts.SeesAll(c.from) {
		v.Counters, v.Losses = a.hub.Counters(), a.hub.Losses(a.opts.Translations)
	}
	v.Tasks.Running, v.Tasks.Queued = totals.Active, totals.Queued
	return a.reply(c.w, http.StatusOK, v)
}

// getUsage returns token totals of all principals, so it is for operators.
func (a *api) getUsage(c call) error {
	by := cmp.Or(usage.By(c.r.URL.Query().Get("by")), usage.ByAgent)
	totals, missing, err := a.hub.Usage(c.r.Context(), c.from, by)
	if err != nil {
		return err
	}
	budgets := []budgetView{}
	for _, b := range a.hub.Budgets(c.from) {
		v := budgetView{By: b.By, Key: b.Key, Tokens: b.Tokens, Per: b.Per, Used: b.Used, Percent: b.Percent()}
		if !b.Resets.IsZero() {
			v.Resets = &b.Resets
		}
		if v.Cost = b.Cost; b.Cost.Known() {
			v.Used, v.UsedCost = 0, core.Money{Nanos: b.Used, Currency: b.Cost.Currency}
		}
		budgets = append(budgets, v)
	}
	return a.reply(c.w, http.StatusOK, struct {
		By       usage.By      `json:"by"`
		Currency string        `json:"currency"`
		Totals   []usage.Total `json:"totals"`
		Budgets  []budgetView  `json:"budgets"`
		Missing  []string      `json:"missing,omitempty"`
	}{by, a.hub.Currency(), totals, budgets, missing})
}

// budgetView is how much of a budget a holder has used.
type budgetView struct {
	By      usage.By     `json:"by"`
	Key     string       `json:"key"`
	Tokens  int64        `json:"tokens"`
	Per     usage.Period `json:"per"`
	Used    int64        `json:"used"`
	Percent int64        `json:"percent"`
	// Cost is the limit of a budget in money, whose Tokens and Used are 0.
	Cost     core.Money `json:"cost,omitzero"`
	UsedCost core.Money `json:"used_cost,omitzero"`
	Resets   *time.Time `json:"resets,omitempty"`
}
