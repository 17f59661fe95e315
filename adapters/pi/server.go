package pi

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Name is the dialect.
const Name = "pi"

// ProtocolVersion is the version of the protocol (section 2.1).
const ProtocolVersion = "1.0.0"

// Options make a Server. A zero field takes its default.
type Options struct {
	// Version is sent as serverVersion; default "dev".
	Version string
	// Commands are the options of the engine of commands. Its Log is that of the server.
	Commands command.Options
	// MaxMessageBytes bounds one frame of a client; default 10 MiB.
	MaxMessageBytes int
	// MaxSessions bounds the sessions of a client in memory, which is a principal, or on an
	// open hub a connection, and AllSessions those of all clients; default 100 and 10,000.
	// Beyond them idle sessions without a subscriber are parked.
	MaxSessions, AllSessions int
	// MaxConnections bounds the WebSocket connections; default 1000.
	MaxConnections int
	// BacklogBytes bounds what waits for a slow client, except the events of runs, which wait
	// in the hub; default 32 MiB. Beyond it the connection is closed.
	BacklogBytes int
	// SessionLifetime is how long a session lives from its creation; a busy one lives until
	// it is idle. Default 24 h, negative for no limit.
	SessionLifetime time.Duration
	// Breakers configure the circuit breakers of agents and of bash.
	Breakers command.Breakers
	// Bash lets every client run programs as the user of the hub, for at most the prompt
	// timeout.
	Bash bool
	// Reaper is a command line that runs the arguments after it as reaper.Run does, so that
	// no process outlives its bash. Without it one that leaves the process group does.
	Reaper []string
	// Retries bounds the retries after a failure that may pass, unless the session has
	// set_auto_retry off; default 3, negative for none. RetryDelay is the delay before the
	// first, which doubles with each further one; default 2 s.
	Retries    int
	RetryDelay time.Duration
	// CompactAt is the percentage of its agent's context window at which a conversation is
	// compacted, unless the session has set_auto_compaction off; default 87, negative for
	// never.
	CompactAt int
	// Dialects are the dialects of the hub's agents. The conversation of a file stays bound
	// to an agent of these, even if it is away.
	Dialects []string
	// DropTasks stops a prompt when the client that sent it leaves.
	DropTasks bool
	// GatherTime is how long the lifecycle events of others' commands are batched, so that
	// not each of them wakes every client; default 10 ms, negative for not at all.
	GatherTime time.Duration
	// DrainTimeout is sent to clients with server_shutdown; default 30 s.
	DrainTimeout time.Duration
	// Dir is the working directory of sessions that name none; default that of the process.
	Dir string
	// SessionDir is where conversations are written to; "" keeps them in memory only.
	SessionDir string
	// SessionRoots are further directories below which files are listed and loaded.
	SessionRoots []string
	// ExportDirs are further directories below which pages may be exported.
	ExportDirs []string
	// MaxFileBytes bounds a session file that is loaded; default 64 MiB.
	MaxFileBytes int64
	// Link bounds the connections.
	Link link.Options
	// Frames returns the frames of a client that came to another hub; nil keeps none.
	Frames func() *frame.Ring
	// Log is for operators; nil discards it.
	Log *slog.Logger

	// maxQueued bounds the messages that wait in a session, in bytes; 32 MiB but in tests.
	maxQueued int
}

func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.MaxMessageBytes = cmp.Or(o.MaxMessageBytes, 10<<20)
	o.MaxSessions = cmp.Or(o.MaxSessions, 100)
	o.AllSessions = cmp.Or(o.AllSessions, 10_000)
	o.MaxConnections = cmp.Or(o.MaxConnections, 1000)
	o.BacklogBytes = cmp.Or(o.BacklogBytes, 32<<20)
	o.Breakers = o.Breakers.WithDefaults()
	o.SessionLifetime = cmp.Or(o.SessionLifetime, 24*time.Hour)
	o.Retries = cmp.Or(o.Retries, 3)
	o.RetryDelay = cmp.Or(o.RetryDelay, 2*time.Second)
	o.CompactAt = cmp.Or(o.CompactAt, 87)
	o.GatherTime = cmp.Or(o.GatherTime, 10*time.Millisecond)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 30*time.Second)
	o.MaxFileBytes = cmp.Or(o.MaxFileBytes, 64<<20)
	o.maxQueued = cmp.Or(o.maxQueued, 32<<20)
	if o.SessionDir != "" {
		o.SessionDir = conversation.Resolve(o.SessionDir) // as the paths of loaded files are
	}
	if o.Dir == "" {
		o.Dir, _ = os.Getwd() // "" where that is gone
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Commands.Log = o.Log
	return o
}

// component is the server itself at the hub: what it looks up for no client in particular.
var component = func() hub.Identity {
	id := hub.ComponentIdentity("pi-server", Name)
	id.Coalesces = true // its sessions keep whole messages
	return id
}()

// Server holds the pi sessions of one hub, which all pi connections share. It is safe for
// concurrent use.
type Server struct {
	hub      *hub.Hub
	handlers map[string]handler
	opts     Options
	engine   *command.Engine

	rendering render.Task // common to the views of all tasks

	root *hub.Session  // reads the tasks of all runs, for the sessions
	done chan struct{} // closed when root has no more events

	store *conversation.Store // of session files

	visitors gate // clients that came to other hubs

	quit         context.CancelFunc // ends the workers
	working      sync.WaitGroup
	jobs         *command.Jobs // that use the disk
	lists        *command.Jobs // lists of files, one at a time
	summaries    *command.Jobs // the preparation of summaries
	sessions     map[command.Key]*session
	parked       *lru.Cache[command.Key, *parked]
	clients      []*connection
	flushTimer   *time.Timer             // calls flushGathered; nil before its first use
	flushPending bool                    // flushTimer is set
	sockets      int                     // clients over WebSocket
	runs         map[core.TaskID][]*step // more than one where sessions share a thread
	threads      map[core.ThreadID]*sharedThread
	connected    uint64 // connections so far

	circuits     *command.AgentCircuits
	bash         *command.Circuit // of all sessions together
	bashTimeouts int64            // bash commands that took too long
	expired      int64            // sessions deleted at the end of their lifetime
	recent       []recentEvent    // of the server, told by get_metrics
}

// NewServer returns the pi-server of a hub. It reads the hub until that is closed
// or [Server.Close] is called.
func NewServer(h *hub.Hub, opts Options) *Server {
	opts = opts.withDefaults()
	s := &Server{
		hub: h, handlers: handlers(), opts: opts, done: make(chan struct{}),
		root:     h.Connect(component),
		sessions: map[command.Key]*session{}, parked: lru.New(lru.Options[command.Key, *parked]{Count: maxParked}),
		runs: map[core.TaskID][]*step{}, threads: map[core.ThreadID]*sharedThread{}, jobs: command.NewJobs(), lists: command.NewJobs(), summaries: command.NewJobs(),
		circuits: command.NewAgentCircuits(opts.Breakers.Agent), bash: command.NewCircuit("bash_global", opts.Breakers.BashAll),
	}
	s.rendering, s.store, s.engine = s.newRenderTask(), s.newStore(), command.New(engineHost{s}, opts.Commands)
	s.opts.Commands = s.engine.Options() // with its defaults
	ctx, stop := context.WithCancel(context.Background())
	s.quit = stop
	for range command.Workers {
		s.working.Go(func() { s.jobs.Work(ctx) })
	}
	s.working.Go(func() { s.lists.Work(ctx) })
	s.working.Go(func() { s.summaries.Work(ctx) })
	go s.record()
	heldMatter.Answer(h, func(_ context.Context, _ core.Principal, scope string) (held, error) { return s.held(scope), nil })
	h.RPC().Serve(Name, s.host)
	return s
}

// Close ends the server and waits for its goroutines. Call it once the hub is closed and the
// connections have ended.
func (s *Server) Close() {
	s.visitors.close()
	s.root.Close(nil)
	<-s.done
	s.quit()
	s.closeSessions()
	s.working.Wait()
	s.engine.Close() // after the workers, whose outcomes the journal keeps too
	s.store.FlushAll()
	s.engine.Lock()
	defer s.engine.Unlock()
	if s.flushTimer != nil {
		s.flushTimer.Stop()
	}
}

// Drain waits until every command has its response, so that the connections can end. Call it
// once the hub is closed. When ctx ends first, it stops the programs and the workers and
// returns; their commands are answered as cancelled.
func (s *Server) Drain(ctx context.Context) {
	select {
	case <-s.engine.Idle():
		return
	case <-ctx.Done():
	}
	s.quit()
	s.engine.Lock()
	defer s.engine.Unlock()
	for _, ss := range s.sessions {
		ss.bash.kill()
	}
}

// record reads the tasks of every run, so that sessions are up to date with or without a
// subscriber.
func (s *Server) record() {
	defer close(s.done)
	for {
		b, err := s.root.Next(context.Background())
		s.engine.Lock()
		switch {
		case err != nil:
			s.engine.Stop()
			for _, ss := range s.sessions {
				ss.stopFollowing()
				if a := ss.summarizing; a != nil && a.task != nil {
					a.finish()
				}
				if r := ss.run; r != nil && ss.summarizing == nil && r.last().task != nil {
					r.last().cutOff()
				}
			}
			s.engine.Unlock()
			s.engine.Journal().Flush() // clients get their responses before the connections end
			return
		case b.Draining != "":
			s.engine.Drain()
			s.stopRetrying()
		case b.Question != nil:
			b.Question.Tag.(*session).questionChanged(b.Question.Question, b.Question.Outcome)
		default:
			s.read(b)
		}
		s.engine.Unlock()
	}
}

// read handles events of a task.
func (s *Server) read(b hub.Batch) {
	switch tag := b.Tag.(type) {
	case *summaryRequest:
		tag.follow(b.Events)
	case *sharedThread:
		tag.taskOpened(b.Task)
	case *step:
		steps := s.runs[b.Task.ID()]
		if len(steps) > 1 {
			steps = slices.Clone(steps) // a step that ends is removed from them
		}
		for _, st := range steps {
			if st.task.IsRedacted() != b.Task.IsRedacted() {
				continue // its session shows the task in the other form
			}
			if b.Gap != nil && b.Gap.To >= st.seen.Seq { // else it was before that
				st.record.Gap(b.Gap.From, b.Gap.To, time.Now())
			}
			st.follow(b.Events)
		}
	}
}

// newRenderTask returns what the views of all tasks have in common.
func (s *Server) newRenderTask() render.Task {
	limits := s.hub.Limits()
	return render.Task{ApprovalTimeout: limits.QuestionTimeout, MaxAttempts: max(0, limits.Retries), Count: s.count}
}

// renderTask returns what a view of a task of the session needs. It does not count.
func (ss *session) renderTask(task core.TaskID) render.Task {
	s := ss.server
	t := s.rendering
	t.Envelope, t.ID, t.Count = ss.envelope, task, nil
	return t
}

// count counts an event of this dialect by its name.
func (s *Server) count(what string) { s.hub.Count(Name + "." + what) }
