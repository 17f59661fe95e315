package pi

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// request is a command of a connection, and the session that it is for once it runs.
type request struct {
	command.Execution
	on     *session
	client *connection
	// readers are who had subscribed to the session that it names when it was admitted.
	readers []*connection
}

// submit takes a command from the connection.
func (c *connection) submit(cmd command.Command) {
	x := &request{client: c}
	x.Owner = x
	c.server.engine.Submit(&c.Client, cmd, &x.Execution)
}

func requestOf(x *command.Execution) *request { return x.Owner.(*request) }

// forSession says for which session the command is.
func (x *request) forSession(ss *session) {
	x.on = ss
	x.SetSession(ss)
}

// find returns the session that the command is for now, or nil.
func (x *request) find() *session {
	ss, _ := x.Find().(*session)
	return ss
}

// engineHost is the server as the engine knows it.
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

// Perform does what a command asks for, once its session is in memory.
func (s engineHost) Perform(x *command.Execution) command.Outcome { return requestOf(x).do() }

func (x *request) do() command.Outcome {
	s := x.client.server
	ss := x.find()
	if p := s.parkedFor(x); ss == nil && p != nil {
		return x.bringBack(p)
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
		ss.touched = x.Admitted()
	}
	return s.handlers[x.Kind](s, x)
}

func (x *request) checkVersion(ss *session) string {
	if ss == nil {
		return x.CheckVersion(nil, 0)
	}
	return x.CheckVersion(ss, ss.version)
}

// Admitted notes who has subscribed to the session that the command is for: they are told
// of all its phases.
func (s engineHost) Admitted(x *command.Execution, named command.Session) {
	if ss, ok := named.(*session); ok {
		requestOf(x).readers = ss.readers
	}
}

// Replayed subscribes a connection that is told once more that it has: it may be another.
func (s engineHost) Replayed(x *command.Execution) {
	if r := requestOf(x); x.Kind == "switch_session" {
		if ss := r.find(); ss != nil {
			r.client.subscribe(ss)
		}
	}
}

// Recovered takes in which session an earlier process had: it is parked since.
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

// What the engine knows of a session.

func (ss *session) Running() bool { return ss.run != nil }

func (ss *session) Deleted() (until uint64, gone bool) { return ss.until, ss.deleted }

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

// getHistory tells what happened to the last commands.
func getHistory(s *Server, x *request) command.Outcome {
	return s.engine.Journal().History(&x.Execution, s.journalPath(x.client))
}

// getRecovery tells what the start found of the client's commands.
func getRecovery(s *Server, x *request) command.Outcome {
	return command.Outcome{Data: wire.Encode(s.engine.Journal().Recovered(x.client.Scope, s.journalPath(x.client), true))}
}

// Recover reads from the journal what came of earlier commands, so that they are replayed
// and not done again. Call it once, before any connection is served; it does nothing
// without a journal. It returns the journal's error.
func (s *Server) Recover(ctx context.Context) error { return s.engine.Journal().Recover(ctx) }

func (s engineHost) Count(what string) { s.Server.count(what) }

// handler does what a command asks for, in a turn of the engine.
type handler func(*Server, *request) command.Outcome

// handlers returns what each type of command does.
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
