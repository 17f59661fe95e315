package pi

import (
	"fmt"
	"time"
)

// execute begins a command (section 7.2).
func (s *Server) execute(x *execution) {
	if s.unkept(x) {
		return // it begins once the journal has it
	}
	if !x.started {
		x.started = true
		s.keepStarted(x)
		s.note(x.known, phaseStarted, time.Now(), nil)
		s.announce(x, x.lifecycle("started", nil))
	}
	s.proceed(x)
}

// proceed does what a command that has begun asks for, once what it depends on has
// succeeded.
func (s *Server) proceed(x *execution) {
	waits, problem := s.await(x)
	switch {
	case waits:
		return
	case problem != "":
		s.settle(x, failed(problem))
		return
	case x.lane == nil && !x.spec.control && !s.overtakes(x):
		s.enqueue(x) // what it was to go beside has ended meanwhile
		return
	}
	x.working = true
	if o := s.perform(x); !o.pending {
		x.working = false
		s.settle(x, o)
	}
}

func (s *Server) perform(x *execution) outcome {
	ss := s.lookup(x)
	if p := s.parkedFor(x); ss == nil && p != nil {
		return s.bringBack(x, p)
	}
	if want, ok := x.whole("ifSessionVersion"); ok && x.before == nil {
		switch {
		case ss == nil:
			return failed(fmt.Sprintf("Session %s not found for ifSessionVersion=%d", x.session, want))
		case int64(ss.version) != want:
			return failed(fmt.Sprintf("Session version mismatch: expected %d, got %d", want, ss.version))
		}
	}
	if !x.client.attached && s.opts.DropTasks && classes[x.kind] == long {
		return failed("the client left")
	}
	if x.spec.session {
		if ss == nil {
			return failed(notFound(x.session))
		}
		x.on = ss
		ss.touched = x.admitted
	}
	return x.spec.run(s, x)
}

// finish says what came of a command that went on. What comes too late changes
// nothing but that its lane goes on (section 11).
func (s *Server) finish(x *execution, o outcome) {
	x.working = false
	s.settle(x, o)
	s.release(x)
}

// settle makes the outcome of a command certain, the first time that it is called.
func (s *Server) settle(x *execution, o outcome) {
	if x.settled {
		return
	}
	x.settled = true
	x.stopClocks()
	if x.expired {
		o = outcome{err: timedOut(x.kind, s.timeout(x.command)), timedOut: true}
	}
	r := response{data: o.data, err: o.err, timedOut: o.timedOut}
	if ss := x.on; ss != nil && o.err == "" && !ss.deleted {
		if x.spec.mutates {
			ss.version++
		}
		r.version, r.hasV = ss.version, true
	}
	s.keepOutcome(x, r, o.after)
}

// conclude tells everybody what came of a command, remembers it, and lets go on what
// waited for it.
func (s *Server) conclude(x *execution, r response, after func()) {
	k := x.known
	delete(s.flying, x)
	s.flyingBytes -= x.size
	defer s.settled()
	now := time.Now()
	s.memory.remember(k, r, now)
	s.tell(x, now, r)
	if after != nil {
		after()
	}
	again, dependents := k.again, k.dependents
	k.again, k.dependents = nil, nil
	s.duplicates -= len(again)
	for _, twin := range again {
		s.answerAgain(twin, now, r)
	}
	x.told = true
	s.release(x)
	s.wake(k, dependents)
}

// tell tells what came of a command: exactly one command_finished, then the response
// (facts, section 2.2).
func (s *Server) tell(x *execution, at time.Time, r response) {
	s.note(x.known, phaseFinished, at, &r)
	s.announce(x, x.lifecycle("finished", &r))
	x.client.push(item{frame: appendResponse(nil, x.command, r)})
	x.client.answered()
}
