package mcp

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// listen serves the notification stream of a legacy client: it
// reports changes of the tools.
func (s *Server) listen(w http.ResponseWriter, r *http.Request) {
	h, unknown := s.authenticate(r)
	if unknown != nil {
		s.refuseCaller(w, r, unknown)
		return
	}
	if s.passOn(w, r, h, jsonrpc.Message{}) {
		return
	}
	if !acceptsStream(r) {
		s.refuse(w, http.StatusNotAcceptable, nil, invalid("GET returns an event stream: send Accept: text/event-stream, or POST a message"))
		return
	}
	ctx, end, full := h.begin(r.Context(), &call{session: r.Header.Get(wire.HeaderSession), stream: true})
	if full != nil {
		s.refuse(w, http.StatusTooManyRequests, nil, &jsonrpc.Error{Code: codeBusy, Message: full.Error()})
		return
	}
	defer end()
	changes := h.session.ChildFor("", nil) // before the client gets the head of the stream
	defer changes.Close(nil)
	changes.WatchTools()
	a := &reply{w: w, rc: http.NewResponseController(w)}
	if a.stream([]byte(wire.Comment)) != nil {
		return
	}
	follow(ctx, changes, s.opts.KeepAlive, func(b hub.Batch) error {
		if b.ToolsChanged {
			return a.stream(wire.Event(notification(wire.NoteToolsChanged, nil)))
		}
		return a.stream([]byte(wire.Comment))
	})
}

// follow calls notify with the news of a session, and with an empty batch if there is none for
// silence. It returns when notify returns an error, or ctx or the session ends.
func follow(ctx context.Context, s *hub.Session, silence time.Duration, notify func(hub.Batch) error) {
	quiet := make(chan struct{}, 1)
	timer := time.AfterFunc(silence, func() {
		select {
		case quiet <- struct{}{}:
		default:
		}
	})
	defer timer.Stop()
	for {
		b, err := s.NextOr(ctx, quiet)
		if err != nil || notify(b) != nil {
			return
		}
		timer.Reset(silence)
	}
}

// subscribe is the notification stream of a modern client: changes of the
// tools, and the states of tasks. It ends with the connection, or with the token.
func (s *Server) subscribe(q *request, a *reply) (any, *jsonrpc.Error) {
	var p struct {
		Notifications *struct {
			Tools bool          `json:"toolsListChanged"`
			Tasks []core.TaskID `json:"taskIds"`
		} `json:"notifications"`
	}
	if bad := q.read(&p); bad != nil {
		return nil, bad
	}
	want := p.Notifications
	switch {
	case want == nil:
		return nil, badParams("invalid params: missing required 'notifications' field")
	case len(want.Tasks) > maxListened:
		return nil, badParams("taskIds: want at most %d, got %d", maxListened, len(want.Tasks))
	case len(want.Tasks) > 0:
		if bad := q.needsTasks(); bad != nil {
			return nil, bad
		}
	}
	ctx, end, full := q.holder.begin(q.http.Context(), &call{session: q.session, id: q.ID, stream: true})
	if full != nil {
		return nil, &jsonrpc.Error{Code: codeBusy, Message: full.Error()}
	}
	defer end()
	l := &listener{server: s, request: q, reply: a, changes: q.holder.session.ChildFor("", nil), tools: want.Tools, tasks: map[core.TaskID]*listened{}}
	defer l.changes.Close(nil)
	if want.Tools {
		l.changes.WatchTools() // before the client learns that it is subscribed
	}
	for _, id := range want.Tasks {
		l.add(id)
	}
	if a.stream(wire.Event(l.acknowledgement(want.Tasks))) == nil && l.tellAll() == nil && (want.Tools || len(l.tasks) > 0) {
		follow(ctx, l.changes, s.opts.KeepAlive, l.tell)
	}
	out := s.head(q, wire.ResultComplete)
	out.Meta.Subscription = q.ID
	return out, nil
}

// maxListened is how many tasks one stream may follow.
const maxListened = 64

// listener is a notification stream of a client.
type listener struct {
	server  *Server
	request *request
	reply   *reply
	changes *hub.Session
	tools   bool
	tasks   map[core.TaskID]*listened
}

// add follows a task if the client may read it.
func (l *listener) add(id core.TaskID) {
	t, bad := l.server.taskOf(l.request, id)
	if bad != nil || l.tasks[id] != nil {
		return
	}
	l.tasks[id] = &listened{task: t}
	if l.request.elicits {
		_ = l.changes.WatchQuestions(question.View{Tag: id, Thread: t.Thread(), For: l.request.principal()})
	}
	_ = l.changes.Watch(t, t.Last().Cursor(), nil) // the session has ended, which is noticed next
}

// acknowledgement is the first message: what the client will be notified of.
func (l *listener) acknowledgement(asked []core.TaskID) []byte {
	var agreed struct {
		Tools bool          `json:"toolsListChanged,omitempty"`
		Tasks []core.TaskID `json:"taskIds,omitempty"`
	}
	agreed.Tools = l.tools
	for _, id := range asked {
		if l.tasks[id] != nil {
			agreed.Tasks = append(agreed.Tasks, id)
		}
	}
	return notification(wire.NoteAcknowledged, struct {
		Meta          headMeta `json:"_meta"`
		Notifications any      `json:"notifications"`
	}{l.meta(), agreed})
}

func (l *listener) meta() headMeta { return headMeta{Subscription: l.request.ID} }

// tell sends what is new.
func (l *listener) tell(b hub.Batch) error {
	switch {
	case b.ToolsChanged:
		return l.reply.stream(wire.Event(notification(wire.NoteToolsChanged, struct {
			Meta headMeta `json:"_meta"`
		}{l.meta()})))
	case b.Task != nil && !slices.ContainsFunc(b.Events, changesState):
		return nil
	case b.Task != nil:
		return l.tellTask(l.tasks[b.Task.ID()])
	case b.Question != nil:
		return l.tellTask(l.tasks[b.Question.Tag.(core.TaskID)])
	}
	return l.reply.stream([]byte(wire.Comment))
}

// listened is a task on a stream, and what the client was told last.
type listened struct {
	task *task.Task
	told string
}

// tellAll sends the states of all tasks that have changed.
func (l *listener) tellAll() error {
	for _, t := range l.tasks {
		if err := l.tellTask(t); err != nil {
			return err
		}
	}
	return nil
}

// tellTask sends the state of a task if it has changed.
func (l *listener) tellTask(t *listened) error {
	state := l.server.stateOf(l.request, t.task)
	told := state.Status + "\n" + state.Message
	for _, key := range slices.Sorted(maps.Keys(state.Requests)) {
		told += "\n" + key
	}
	if told == t.told {
		return nil
	}
	t.told = told
	return l.reply.stream(wire.Event(notification(wire.NoteTask, struct {
		Meta headMeta `json:"_meta"`
		taskState
	}{l.meta(), state})))
}

// changesState reports whether a task may be in another state after the event.
func changesState(e core.Event) bool {
	k := e.Body.Kind()
	return changesInputs(e) || k == core.KindAssigned || k == core.KindRetrying || k.Ends()
}
