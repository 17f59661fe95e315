package pirpc

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// process is one process of pi. Its reader loop handles answers and events, in order.
type process struct {
	opts  *Options
	link  *link.Link[[]byte, []byte]
	noise *agent.Noise
	// frames has what belongs to tasks; nil keeps none.
	frames *frame.Ring
	// state is what the process said when it became ready, or after a switch of its session.
	state wire.State
	// inUse says that a thread has it. As state, it belongs to the task that runs.
	inUse bool

	mu      sync.Mutex
	ids     uint64
	waiting []call // by age
	run     *run   // nil while it works on no task
	busy    bool   // within a run of the model, whether for a task or not
}

// call is a command whose answer is awaited.
type call struct {
	id, name string
	then     func(*wire.Response)
}

func newProcess(opts *Options, conn link.Conn[[]byte, []byte]) *process {
	ring := opts.Frames.Connect(Name, nil)
	return &process{opts: opts, link: link.New(conn, link.Options{Frames: ring}), frames: ring, noise: agent.NewNoise(opts.Log, opts.Count)}
}

// send sends a command, and sent is called once the process has its line; nil is not. then is
// called by the reader loop with the answer, or never if the process ends before. It returns the
// reason of the link or the cause of ctx.
func (p *process) send(ctx context.Context, name string, encode func(id string) []byte, then func(*wire.Response), sent func()) error {
	p.mu.Lock()
	p.ids++
	id := "d" + strconv.FormatUint(p.ids, 10)
	p.waiting = append(p.waiting, call{id, name, then})
	p.mu.Unlock()
	line := encode(id)
	return p.link.SendThen(ctx, line, len(line), sent)
}

// ask sends a command without arguments.
func (p *process) ask(ctx context.Context, name string, then func(*wire.Response)) error {
	return p.send(ctx, name, func(id string) []byte { return wire.Command(id, name) }, then, nil)
}

// await sends a command and waits for its answer.
func (p *process) await(ctx context.Context, name string, encode func(id string) []byte) (*wire.Response, error) {
	answer := make(chan *wire.Response, 1)
	if err := p.send(ctx, name, encode, func(r *wire.Response) { answer <- r }, nil); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		return r, nil
	case <-p.link.Done():
		reason := p.link.Reason()
		return nil, &reason
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// receive handles one line.
func (p *process) receive(ctx context.Context, line []byte) error {
	e, err := wire.Decode(line)
	if err != nil {
		p.noise.Skip(countGarbage, "a line of pi is no event and was skipped", "problem", err, "line", agent.Excerpt(line))
		p.lostLine()
		return nil
	}
	switch e := e.(type) {
	case *wire.Response:
		if r := p.current(); r != nil {
			r.beginAnswer()
		}
		p.answer(e)
		return nil
	case *wire.RunStart:
		p.setBusy(true)
	case *wire.RunEnd:
		p.setBusy(false)
	}
	if r := p.current(); r != nil && r.handle(e) {
		return nil
	}
	return p.stray(ctx, e)
}

// rejected handles a line over the limit, which the transport has skipped.
func (p *process) rejected(_ context.Context, r *link.Reject) error {
	p.noise.Skip(countTooLong, "a line of pi is too long and was skipped", "problem", r)
	p.lostLine()
	return nil
}

// lostLine tells the run that a line was lost.
func (p *process) lostLine() {
	if r := p.current(); r != nil {
		r.lostLine()
	}
}

// answer passes an answer to who sent the command. One without an id answers the oldest command
// of its name: up to version 0.74 those to unknown commands have none.
func (p *process) answer(r *wire.Response) {
	p.mu.Lock()
	var then func(*wire.Response)
	for i, c := range p.waiting {
		if c.id == r.ID || r.ID == "" && c.name == r.Command {
			then = c.then
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	if then == nil {
		p.noise.Skip(countStray, "pi answered a command that nobody waits for", "command", r.Command, "problem", r.Error)
		return
	}
	then(r)
}

// stray handles an event while the process works on no task. Nobody can be asked then: a dialog
// is cancelled, so that pi does not wait.
func (p *process) stray(ctx context.Context, e wire.Event) error {
	if d, is := e.(*wire.Dialog); is {
		if !d.WantsReply() {
			return nil
		}
		p.noise.Skip(countUnasked, "pi asks something while it works on no task", "title", d.Title)
		return p.reply(ctx, d.ID, wire.Reply{Cancelled: true})
	}
	p.opts.Count(countStray)
	return nil
}

// reply answers a dialog.
func (p *process) reply(ctx context.Context, dialog string, r wire.Reply) error {
	line := wire.Respond(dialog, r)
	return p.link.Send(ctx, line, len(line))
}

// begin gives the events of the process to a run; nil to none.
func (p *process) begin(r *run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = r
}

func (p *process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

func (p *process) setBusy(busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy = busy
}

// isBusy reports whether pi works by itself, as an extension can make it do.
func (p *process) isBusy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

// alive reports whether the process can be used.
func (p *process) alive() bool {
	select {
	case <-p.link.Done():
		return false
	default:
		return true
	}
}

// end ends the process. It does not wait for that.
func (p *process) end(why string) {
	p.link.Close(link.Reason{Cause: link.Normal, Text: why})
}

// resume switches to the session in a file, and reports whether the process has it: a file that
// is gone would become an empty session.
func (p *process) resume(ctx context.Context, file string) (bool, error) {
	r, err := p.await(ctx, wire.CommandSwitchSession, func(id string) []byte { return wire.SwitchSession(id, file) })
	if err != nil {
		return false, err
	}
	if cancelled := string(r.Data.Get("cancelled").Raw()); !r.Success || cancelled == "true" {
		p.opts.Log.Warn("pi does not continue a session", "file", file, "error", r.Error)
		return false, nil
	}
	return p.refresh(ctx)
}

// refresh reads the state, and reports whether the session has messages.
func (p *process) refresh(ctx context.Context) (bool, error) {
	r, err := p.await(ctx, wire.CommandState, func(id string) []byte { return wire.Command(id, wire.CommandState) })
	if err != nil {
		return false, err
	}
	s, err := r.State()
	if err != nil || !r.Success {
		return false, core.NewFault(core.CodeUnreachable, "pi does not tell its state: %s", r.Error).Because(err)
	}
	p.state = s
	return s.MessageCount > 0, nil
}

// start runs the process until it ends, and returns why. ready is called by the reader loop after
// its first answer.
func (p *process) start(ctx context.Context, ready func()) link.Reason {
	answered := make(chan struct{})
	err := p.ask(ctx, wire.CommandState, func(r *wire.Response) {
		s, err := r.State()
		if err != nil || !r.Success {
			p.link.Close(*link.Because(link.Protocol, "get_state was not answered with a state: %s", r.Error))
			return
		}
		p.state = s
		close(answered)
		ready()
	})
	if err != nil {
		p.link.Close(*link.Because(link.Internal, "%v", err))
	}
	var watch sync.WaitGroup
	watch.Go(func() {
		limit := time.NewTimer(p.opts.StartTimeout)
		defer limit.Stop()
		select {
		case <-answered:
		case <-p.link.Done():
		case <-limit.C:
			p.link.Close(*link.Because(link.Unresponsive, "it did not answer within %s: see whether its command has --mode rpc", p.opts.StartTimeout))
		}
	})
	reason := p.link.Run(ctx, p.receive, p.rejected)
	watch.Wait()
	if r := p.current(); r != nil {
		r.lost(reason)
	}
	return reason
}
