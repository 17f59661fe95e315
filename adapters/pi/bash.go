package pi

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/shell"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// bashOff is the error of bash where it is not allowed.
const bashOff = "bash is not allowed on this server: whoever runs it allows it to all of its pi clients with the setting pi.bash (pi: {bash: true}, or DRAGOMAN_PI_BASH=true)"

// bashRun is one bash command under way in a session.
type bashRun struct {
	x     *request
	stop  context.CancelFunc
	calls [2]command.Call // of the circuit of the session and of the one for all sessions
}

// bash runs a command in the directory of the session (section 17.2), one at a time in each
// session.
func bash(s *Server, x *request) command.Outcome {
	ss := x.target
	if !s.opts.Bash {
		return command.Failed(bashOff)
	}
	if s.engine.Stopped() {
		return command.Failed("Command cancelled because server shutdown completed")
	}
	calls, problem := ss.admitBash()
	if problem != "" {
		s.engine.Reject(command.BreakerOpen)
		return command.Failed(problem)
	}
	ctx, stop := context.WithCancel(context.Background())
	run := &bashRun{x: x, stop: stop, calls: calls}
	ss.bash = run
	x.OnAbort(stop)
	x.KeepOnly("command", "excludeFromContext")
	line, _ := x.Text("command")
	program := shell.Command{Line: line, Dir: ss.tree.Header.Cwd, Reaper: s.opts.Reaper}
	out := shell.NewOutput(run.send)
	s.working.Go(func() {
		defer stop()
		code, err := program.Run(ctx, out)
		printed := out.Close()
		s.engine.Lock()
		defer s.engine.Unlock()
		run.end(ctx, printed, code, err)
	})
	return command.Outcome{Pending: true}
}

// admitBash asks both circuits. It returns why one refuses, or "".
func (ss *session) admitBash() (calls [2]command.Call, problem string) {
	s := ss.server
	if ss.circuit == nil {
		ss.circuit = command.NewCircuit("bash_session:"+ss.key.ID, s.opts.Breakers.BashSession)
	}
	own, why := ss.circuit.Allow()
	if why != "" {
		return calls, "Bash circuit breaker open for session " + ss.key.ID + ": " + why
	}
	all, why := s.bash.Allow()
	if why != "" {
		own.End(command.ErrInconclusive)
		return calls, "Bash circuit breaker open globally: " + why
	}
	return [2]command.Call{own, all}, ""
}

// send sends output of the command to the subscribers of the session.
func (run *bashRun) send(piece string, skipped int64) {
	x, ss := run.x, run.x.target
	frame := ss.envelope.BashOutput(x.Name(), piece, skipped)
	ss.server.engine.Lock()
	defer ss.server.engine.Unlock()
	ss.subscribers.send(frame)
}

// end settles the command and records its output.
func (run *bashRun) end(ctx context.Context, printed shell.Printed, code int, err error) {
	ss := run.x.target
	ss.bash = nil
	timedOut := run.x.Expired()
	cancelled := ctx.Err() != nil
	verdict := error(nil)
	switch {
	case timedOut || err != nil && !cancelled:
		verdict = command.ErrFailure
	case cancelled:
		verdict = command.ErrInconclusive
	}
	for _, k := range run.calls {
		k.End(verdict)
	}
	if timedOut {
		ss.server.bashTimeouts++
	}
	if err != nil && !cancelled {
		run.x.Finish(command.Failed(err.Error()))
		return
	}
	if cancelled {
		code = 0 // as pi does
	}
	result := bashResult{
		ExitCode: code, Output: printed.Text, Cancelled: cancelled, Truncated: printed.Truncated,
		TotalBytes: printed.Bytes, TotalLines: printed.Lines,
	}
	ss.recordBash(run.x, result)
	run.x.Finish(command.Outcome{Data: strictjson.Encode(result)})
}

// bashResult is the data of the response. The members after Cancelled are additional.
type bashResult struct {
	ExitCode   int    `json:"exitCode"`
	Output     string `json:"output"`
	Cancelled  bool   `json:"cancelled"`
	Truncated  bool   `json:"truncated"`
	TotalBytes int64  `json:"totalBytes"`
	TotalLines int64  `json:"totalLines"`
}

// recordBash adds the command and its output to the conversation, and to the next prompt
// unless the client excludes it.
func (ss *session) recordBash(x *request, r bashResult) {
	if ss.deleted {
		return
	}
	line, _ := x.Text("command")
	excluded := x.Is("excludeFromContext", "true")
	ss.file.Append(ss.tree.AppendMessage(conversation.BashMessage(line, r.Output, r.ExitCode, r.Cancelled, r.Truncated, excluded, time.Now().UnixMilli())))
	if !excluded {
		ss.unreported.add(bashText(line, r))
	}
}

// bashText is the text of a command in the next prompt.
func bashText(command string, r bashResult) string {
	text := "Ran `" + command + "`\n"
	if r.Output == "" {
		text += "(no output)"
	} else {
		text += "```\n" + r.Output + "\n```"
	}
	switch {
	case r.Cancelled:
		text += "\n\n(command cancelled)"
	case r.ExitCode != 0:
		text += fmt.Sprintf("\n\nCommand exited with code %d", r.ExitCode)
	}
	if r.Truncated {
		text += "\n\n[Output truncated: only its end is shown]"
	}
	return text
}

// unreportedBash has the texts of the bash commands that the next prompt reports: at most
// maxUnreported bytes. The oldest are left out first, and counted.
type unreportedBash struct {
	texts   []string
	bytes   int
	leftOut int
}

// maxUnreported bounds the commands in a prompt. A single one may be larger.
const maxUnreported = 256 << 10

func (u *unreportedBash) add(text string) {
	u.texts = append(u.texts, text)
	u.bytes += len(text)
	for u.bytes > maxUnreported && len(u.texts) > 1 {
		u.bytes -= len(u.texts[0])
		u.texts = u.texts[1:]
		u.leftOut++
	}
}

// paragraphs returns the texts that precede the next prompt.
func (u *unreportedBash) paragraphs() []string {
	if u.leftOut == 0 {
		return u.texts
	}
	return append([]string{fmt.Sprintf("[%d earlier commands are left out]", u.leftOut)}, u.texts...)
}

// abortBash kills the command that runs in the session, if one does.
func abortBash(_ *Server, x *request) command.Outcome {
	x.target.bash.kill()
	return command.Outcome{}
}

// kill ends the command; a nil one has ended.
func (run *bashRun) kill() {
	if run != nil {
		run.stop()
	}
}
