package pi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// anonymous begins the ids that the server gives to commands without one.
const anonymous = "anon:"

// execution is one admitted command.
type execution struct {
	command
	client   *connection
	identity []byte // what its lifecycle events say of it
	admitted time.Time
	lane     *lane    // nil of a command that overtook
	on       *session // which it is for, once it runs
}

// outcome is what a handler says. The zero outcome is success without data.
type outcome struct {
	data     json.RawMessage
	err      string
	timedOut bool
	// after runs behind the response.
	after func()
	// pending says that the command goes on: settle is called later.
	pending bool
}

func failed(text string) outcome { return outcome{err: text} }

// submit takes a command from a client: admission decides whether it counts at all
// (section 7.1), execution is up to its lane.
func (s *Server) submit(c *connection, cmd command) {
	problem := validate(cmd) // which can take a while, and needs no lock
	s.mu.Lock()
	defer s.mu.Unlock()
	refuse := func(text string) { c.push(item{frame: appendResponse(nil, cmd, response{err: text})}) }
	if c.pending >= s.opts.MaxPending {
		refuse(fmt.Sprintf("Too many pending commands for this %s (max %d)", c.carrier(), s.opts.MaxPending))
		return
	}
	if s.draining {
		refuse("Server is shutting down")
		return
	}
	if problem != "" {
		if cmd.spec == nil {
			s.count("refused.foreign")
		}
		refuse(problem)
		return
	}
	// Replay, rates and the register of what is in flight stand here.
	x := &execution{command: cmd, client: c, admitted: time.Now()}
	name := cmd.id
	if name == "" {
		s.unnamed++
		name = anonymous + strconv.FormatInt(s.begun, 10) + ":" + strconv.FormatUint(s.unnamed, 10)
	}
	x.identity = appendIdentity(nil, cmd, name)
	c.pending++
	s.broadcast(c.scope, lifecycle("accepted", x.identity, nil))
	if s.overtakes(x) {
		s.execute(x)
		return
	}
	s.enqueue(x)
}

// overtakes reports whether a command does not wait for its lane: one that steers
// or reads, and a prompt that says, or must be told, what becomes of it beside a
// running one.
func (s *Server) overtakes(x *execution) bool {
	if x.spec.control || x.kind != "prompt" {
		return x.spec.control
	}
	ss := s.lookup(x)
	if ss == nil || ss.run == nil {
		return false
	}
	return !s.opts.QueuePrompts || x.is("streamingBehavior", `"steer"`, `"followUp"`)
}

// execute runs a command. It reports whether that goes on.
func (s *Server) execute(x *execution) (pending bool) {
	s.broadcast(x.client.scope, lifecycle("started", x.identity, nil))
	o := s.perform(x)
	if !o.pending {
		s.settle(x, o)
	}
	return o.pending
}

func (s *Server) perform(x *execution) outcome {
	if dependencies, _ := x.list("dependsOn"); len(dependencies) > 0 {
		return failed("dependsOn is not supported by this server yet")
	}
	ss := s.lookup(x)
	if want, ok := x.whole("ifSessionVersion"); ok {
		switch {
		case ss == nil:
			return failed(fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.session, want))
		case int64(ss.version) != want:
			return failed(fmt.Sprintf("Session version mismatch: expected %d, got %d", want, ss.version))
		}
	}
	if x.spec.session {
		if ss == nil {
			return failed(notFound(x.session))
		}
		x.on = ss
	}
	if x.spec.run == nil {
		return failed("Command '" + x.kind + "' is not supported by this server yet")
	}
	return x.spec.run(s, x)
}

// settle ends a command: exactly one command_finished, then the response, then what
// follows from it (facts, section 2.2).
func (s *Server) settle(x *execution, o outcome) {
	r := response{data: o.data, err: o.err, timedOut: o.timedOut}
	if ss := x.on; ss != nil && o.err == "" && !ss.deleted {
		if x.spec.mutates {
			ss.version++
		}
		r.version, r.hasV = ss.version, true
	}
	s.broadcast(x.client.scope, lifecycle("finished", x.identity, &r))
	x.client.push(item{frame: appendResponse(nil, x.command, r)})
	x.client.answered()
	if o.after != nil {
		o.after()
	}
}

// broadcast tells every client of the scope.
func (s *Server) broadcast(scope string, frame []byte) {
	for c := range s.clients {
		if c.scope == scope {
			c.push(item{frame: frame})
		}
	}
}
