package config

import (
	"time"

	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Journal are the settings of the journal.
type Journal struct {
	Sync, NATSURL, Name string
	Age                 time.Duration
	Bytes               int64
	Lag                 time.Duration
}

func (j *Journal) settings(t *table) {
	add(t, "sync", &j.Sync, "interval", "When the embedded journal syncs to disk: at intervals, or always before it acknowledges.").oneOf("interval", "always")
	add(t, "nats_url", &j.NATSURL, "", "Address of an external NATS server with JetStream for the journal. Empty embeds one in data_dir.").flag("nats-url", "address")
	add(t, "name", &j.Name, "dragoman", "Name of this hub on a NATS server that several hubs share.").matching(`^[A-Za-z0-9_-]+$`, "letters, digits, - and _")
	add(t, "age", &j.Age, 168*time.Hour, "How long a task is kept.")
	add(t, "bytes", &j.Bytes, 1<<30, "Maximum size of all tasks that are kept. The default is 128MiB when they are kept in memory, without data_dir and journal.nats_url.").bytes().atLeast(1 << 20)
	add(t, "lag", &j.Lag, 200*time.Millisecond, "Journal delay above which the end of a task is reported only after it is recorded. With 0s every end is recorded first.").atLeast(0)
}

// Usage says what tokens cost, and how much of the usage is kept.
type Usage struct {
	Prices   Prices
	Currency string
	Age      time.Duration
	Bytes    int64
}

func (u *Usage) settings(t *table) {
	add(t, "prices", &u.Prices, nil, "What a million tokens of a model cost, by the name that agents tell. An agent that tells its cost is believed.")
	add(t, "currency", &u.Currency, usage.DefaultCurrency, "Currency of prices, costs and budgets, as a code of ISO 4217. A cost in another one does not count.").matching(`^[A-Z]{3}$`, "three capital letters, such as EUR")
	add(t, "age", &u.Age, 9600*time.Hour, "How long token usage is kept.")
	add(t, "bytes", &u.Bytes, 64<<20, "Maximum size of the usage that is kept. All of it is read at start.").bytes().atLeast(1 << 20)
}

// Limits are the limits of the engine. Those of [hub.Limits] that nobody would set are no settings: they have their
// defaults. A zero of Retries, Silence, CauseMemory and HistoryBytes is none, as in the file.
type Limits struct {
	Memory     int64 // of the process: sets GOMEMLIMIT
	Disconnect string
	hub.Limits
}

func (l *Limits) settings(t *table) {
	standard := hub.Limits{}.WithDefaults()
	add(t, "memory", &l.Memory, 0, "Memory that the process should stay below. Tasks, queues and requests may take three quarters of it: above that, new tasks are refused as overloaded. Near it, garbage is collected more often, unless GOMEMLIMIT is set. 0 is half of what the machine or its control group has.").bytes().atLeast(0)
	add(t, "hops", &l.Hops, standard.Hops, "Maximum length of an agent-asks-agent chain.").atLeast(1)
	add(t, "queue_length", &l.QueueLength, standard.QueueLength, "Maximum number of tasks waiting for one agent.").atLeast(1)
	add(t, "retries", &l.Retries, standard.Retries, "How many times a task that failed without any output is given to another agent. 0 disables retries.").atLeast(0)
	add(t, "cancel_grace", &l.CancelGrace, standard.CancelGrace, "Time that an agent has to react to a cancellation. Then the task ends without it, and its slot stays taken for as long again.")
	add(t, "disconnect", &l.Disconnect, standard.Disconnect.String(), "Which agents are disconnected after that time: those that run one task at a time (single), all (always) or none (never). Otherwise the slot is freed.").oneOf("single", "always", "never")
	add(t, "question_timeout", &l.QuestionTimeout, standard.QuestionTimeout, "Time to decide on a tool call that waits for approval, or to answer a question of an agent that sets no timeout.")
	add(t, "silence", &l.Silence, standard.Silence, "How long an agent may say nothing in a task whose request sets no deadline, until the task ends as timeout. Waiting for people, for an agent or for what the agent has asked of others does not count. 0s is until the deadline.").atLeast(0)
	add(t, "cause_memory", &l.CauseMemory, standard.CauseMemory, "How long after its last task an agent's requests still count as part of that task's chain. 0s ends it with the task.").atLeast(0)
	add(t, "pack_tools", &l.PackTools, standard.PackTools, "Maximum number of tools per pack.").atLeast(1)
	add(t, "tool_timeout", &l.ToolTimeout, standard.ToolTimeout, "Timeout of a pack's tool call if the pack sets none.")
	add(t, "max_tool_timeout", &l.MaxToolTimeout, standard.MaxToolTimeout, "Maximum timeout that a pack may set. Existing agents wait 300 s.")
	add(t, "keep_notices", &l.KeepNotices, standard.KeepNotices, "How long a notice on a topic is kept for subscribers that are disconnected or slow.")
	add(t, "card_bytes", &l.CardBytes, standard.CardBytes, "Maximum size of the card of an agent.").bytes().atLeast(1024)
	add(t, "history_bytes", &l.HistoryBytes, standard.HistoryBytes, "Maximum size of the earlier turns sent to an agent that does not know them. 0 sends none.").bytes().atLeast(0)
	add(t, "request_bytes", &l.RequestBytes, standard.RequestBytes, "Maximum size of a request.").bytes().atLeast(4096)
	add(t, "threads", &l.Threads, standard.Threads, "Maximum number of threads kept in memory.").atLeast(1)
	add(t, "finished_tasks", &l.FinishedTasks, standard.FinishedTasks, "Maximum number of finished tasks kept in memory, in addition to the journal.").atLeast(1)
}
