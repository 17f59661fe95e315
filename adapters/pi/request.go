package pi

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// request is a command of a connection, with its target session once it runs.
type request struct {
	command.Execution
	target *session
	client *connection
	// task is the one that it opened or steered, for the frames of its client.
	task core.TaskID
	// frame is its own; nil keeps none.
	frame *frame.Message
	// subscribers are those of the session that it names, as of its admission.
	subscribers []*connection
}

// submit takes a command from the connection.
func (c *connection) submit(cmd command.Command) {
	x := &request{client: c, frame: c.sees.Later()}
	x.Owner = x
	c.server.engine.Submit(&c.Client, cmd, &x.Execution)
}

// became notes what the command has become: the event of a task, or one that the hub refused. A task that
// is none of its business it does not belong to.
func (x *request) became(task core.TaskID, kind core.Kind, err error) {
	if f := core.AsFault(err); err != nil && (f.Code == core.CodeNotAuthorized || f.Code == core.CodeUnknownTask) {
		return
	}
	x.task = task
	seq := uint64(0) // of others it is not known
	if kind == core.KindOpened {
		seq = 1
	}
	x.frame.Event(task, false, kind, seq, err != nil)
}

func requestOf(x *command.Execution) *request { return x.Owner.(*request) }

// forSession sets the session that the command is for.
func (x *request) forSession(ss *session) {
	x.target = ss
	x.SetSession(ss)
}

// find returns the session that the command names, or nil.
func (x *request) find() *session {
	ss, _ := x.Find().(*session)
	return ss
}

// engineHost implements [command.Host].
type engineHost struct{ *Server }

func (s engineHost) Find(key command.Key) command.Session {
	if ss := s.sessions[key]; ss != nil {
		return ss
	}
	return nil
}

func (s engineHost) IsParked(key command.Key) bool {
	_, parked := s.parked.Get(key)
	return parked
}

// Perform executes a command. A parked session that it names is loaded first.
func (s engineHost) Perform(x *command.Execution) command.Outcome { return requestOf(x).do() }

func (x *request) do() command.Outcome {
	s := x.client.server
	ss := x.find()
	if p := s.parkedFor(x); ss == nil && p != nil {
		return x.bringBack(p)
	}
	if ss != nil && !ss.isFor(x.client) && x.Kind != "delete_session" {
		return command.Failed("Session " + ss.key.ID + " shows tasks of others, read with other rights than yours: delete it, or create another for its thread")
	}
	if problem := x.checkVersion(ss); problem != "" {
		return command.Failed(problem)
	}
	if !x.client.Attached && s.opts.DropTasks && x.Spec.Limit == command.Long {
		return command.Failed("the client left")
	}
	if x.Spec.Session {
		if ss == nil {
			return command.Failed(notFound(x.Session))
		}
		x.forSession(ss)
		ss.lastUsed = x.Admitted()
	}
	return s.handlers[x.Kind](s, x)
}

func (x *request) checkVersion(ss *session) string {
	if ss == nil {
		return x.CheckVersion(nil, 0)
	}
	return x.CheckVersion(ss, ss.version)
}

// Admitted notes the subscribers of the session that the command names: they get all of
// its lifecycle events.
func (s engineHost) Admitted(x *command.Execution, named command.Session) {
	if ss, ok := named.(*session); ok {
		requestOf(x).subscribers = ss.subscribers
	}
}

// Replayed subscribes a connection to which a switch_session is replayed: it may not be the
// connection that was subscribed.
func (s engineHost) Replayed(x *command.Execution) {
	if r := requestOf(x); x.Kind == "switch_session" {
		if ss := r.find(); ss != nil && ss.isFor(r.client) {
			r.client.subscribe(ss)
		}
	}
}

// Recovered parks a session of an earlier process.
func (s engineHost) Recovered(was command.Success) {
	if was.File != "" {
		s.parked.Put(was.Key, &parked{path: was.File, made: was.At})
	}
	if was.Kind == "delete_session" {
		s.parked.Remove(was.Key)
	}
	if p, ok := s.parked.Get(was.Key); ok && was.Version != nil {
		p.version = *was.Version
	}
}

// The methods of [command.Session].

func (ss *session) Running() bool { return ss.run != nil }

func (ss *session) Deleted() (successorFrom uint64, deleted bool) {
	return ss.successorFrom, ss.deleted
}

func (ss *session) Succeeded(mutates bool) (version int, ok bool) {
	if ss.deleted {
		return 0, false
	}
	if mutates {
		ss.version++
	}
	return ss.version, true
}

func (ss *session) Location() (id, path string) {
	if ss.deleted {
		return "", ""
	}
	return ss.key.ID, ss.file.Path()
}

// getHistory returns the outcomes of the latest commands.
func getHistory(s *Server, x *request) command.Outcome {
	return s.engine.Journal().History(&x.Execution, s.journalPath(x.client))
}

// getRecovery returns what the server recovered of the client's commands at its start.
func getRecovery(s *Server, x *request) command.Outcome {
	return command.Outcome{Data: strictjson.Encode(s.engine.Journal().Recovered(x.client.Scope, s.journalPath(x.client), true))}
}

// Recover reads the outcomes of earlier commands from the journal, so that they are
// replayed and not executed again. Call it once, before any connection is served. It
// returns the journal's error, and does nothing without a journal.
func (s *Server) Recover(ctx context.Context) error { return s.engine.Journal().Recover(ctx) }

func (s engineHost) Count(what string) { s.Server.count(what) }

// handler executes a command in a turn of the engine.
type handler func(*Server, *request) command.Outcome

// handlers returns the handler of each type of command.
func handlers() map[string]handler {
	return map[string]handler{
		"list_sessions":           listSessions,
		"create_session":          createSession,
		"delete_session":          deleteSession,
		"switch_session":          switchSession,
		"list_stored_sessions":    listStored,
		"load_session":            loadSession,
		"get_metrics":             getMetrics,
		"health_check":            healthCheck,
		"get_startup_recovery":    getRecovery,
		"get_command_history":     getHistory,
		"get_state":               getState,
		"get_messages":            getMessages,
		"get_available_models":    getModels,
		"get_commands":            getCommands,
		"get_skills":              getSkills,
		"get_tools":               getTools,
		"list_session_files":      listFiles,
		"get_session_stats":       getStats,
		"get_fork_messages":       forkMessages,
		"get_tree":                getTree,
		"get_last_assistant_text": getLastText,
		"get_context_usage":       getContext,
		"prompt":                  prompt,
		"steer":                   steer,
		"follow_up":               followUp,
		"abort":                   abort,
		"set_model":               setModel,
		"cycle_model":             cycleModel,
		"set_thinking_level":      setThinking,
		"cycle_thinking_level":    cycleThinking,
		"set_session_name":        setName,
		"compact":                 compact,
		"abort_compaction":        abortCompaction,
		"set_auto_compaction":     setAutoCompaction,
		"set_auto_retry":          setAutoRetry,
		"abort_retry":             abortRetry,
		"bash":                    bash,
		"abort_bash":              abortBash,
		"export_html":             exportHTML,
		"new_session":             newConversation,
		"switch_session_file":     switchFile,
		"fork":                    fork,
		"navigate_tree":           navigate,
		"extension_ui_response":   answer,
	}
}
