package pi

import (
	"context"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// bashOff is what clients are told where bash is not allowed.
const bashOff = "bash is not allowed on this server: whoever runs it allows it to all of its pi clients with the setting pi.bash (pi: {bash: true}, or DRAGOMAN_PI_BASH=true)"

// shell is one bash command under way in a session. Server.mu guards it.
type shell struct {
	x    *execution
	stop context.CancelFunc
	// said is what it printed.
	said  *shellOutput
	calls [2]call // of the circuit of the session and the one of all
}

// bash runs a command in the directory of the session (section 17.2). Its lane sees
// to it that a session runs one at a time.
func bash(s *Server, x *execution) outcome {
	ss := x.on
	if !s.opts.Bash {
		return failed(bashOff)
	}
	if s.stopped {
		return failed("Command cancelled because server shutdown completed")
	}
	sh := &shell{x: x}
	if problem := s.admitShell(ss, sh); problem != "" {
		s.reject(breakerOpen)
		return failed(problem)
	}
	ctx, stop := context.WithCancel(context.Background())
	sh.stop, x.abort = stop, stop
	sh.said = &shellOutput{tell: func(delta string, skipped int64) { s.sayOutput(ss, sh, delta, skipped) }}
	ss.shell = sh
	s.shed(x, "command", "excludeFromContext")
	command, _ := x.text("command")
	dir := ss.tree.Header.Cwd
	s.working.Go(func() {
		defer stop()
		code, err := runShell(ctx, s.opts.Reaper, dir, command, sh.said)
		sh.said.end()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endShell(ctx, ss, sh, code, err)
	})
	return outcome{pending: true}
}

// admitShell asks both circuits. It returns why not, or "".
func (s *Server) admitShell(ss *session, sh *shell) string {
	if ss.circuit == nil {
		ss.circuit = newCircuit("bash_session:"+ss.key.id, s.opts.Breakers.BashSession)
	}
	own, why := ss.circuit.allow()
	if why != "" {
		return "Bash circuit breaker open for session " + ss.key.id + ": " + why
	}
	all, why := s.bash.allow()
	if why != "" {
		own.end(errNeither)
		return "Bash circuit breaker open globally: " + why
	}
	sh.calls = [2]call{own, all}
	return ""
}

// endShell settles the command and keeps what it printed.
func (s *Server) endShell(ctx context.Context, ss *session, sh *shell, code int, err error) {
	ss.shell = nil
	timedOut := sh.x.expired
	cancelled := ctx.Err() != nil
	verdict := error(nil)
	switch {
	case timedOut || err != nil && !cancelled:
		verdict = errFailure
	case cancelled:
		verdict = errNeither
	}
	for _, k := range sh.calls {
		k.end(verdict)
	}
	if timedOut {
		s.bashTimeouts++
	}
	if err != nil && !cancelled {
		s.finish(sh.x, failed(err.Error()))
		return
	}
	if cancelled {
		code = 0 // as pi has it
	}
	output, truncated := sh.said.text()
	s.recordRun(ss, sh, output, code, cancelled, truncated)
	s.finish(sh.x, outcome{data: wire.Encode(bashResult{
		ExitCode: code, Output: output, Cancelled: cancelled, Truncated: truncated,
		TotalBytes: sh.said.bytes, TotalLines: sh.said.total(),
	})})
}

// bashResult is the data of bash. What stands behind Cancelled is additional.
type bashResult struct {
	ExitCode   int    `json:"exitCode"`
	Output     string `json:"output"`
	Cancelled  bool   `json:"cancelled"`
	Truncated  bool   `json:"truncated"`
	TotalBytes int64  `json:"totalBytes"`
	TotalLines int64  `json:"totalLines"`
}

// recordRun makes the command and its output a message of the session, which the agent
// is told with the next prompt unless the client wants it kept out.
func (s *Server) recordRun(ss *session, sh *shell, output string, code int, cancelled, truncated bool) {
	if ss.deleted {
		return
	}
	command, _ := sh.x.text("command")
	excluded := sh.x.is("excludeFromContext", "true")
	s.enter(ss, ss.tree.Say(conversation.BashMessage(command, output, code, cancelled, truncated, excluded, time.Now().UnixMilli())))
	if !excluded {
		ss.ran.add(ranText(command, output, code, cancelled, truncated))
	}
}

// ranText is what the agent is told of a command.
func ranText(command, output string, code int, cancelled, truncated bool) string {
	text := "Ran `" + command + "`\n"
	if output == "" {
		text += "(no output)"
	} else {
		text += "```\n" + output + "\n```"
	}
	switch {
	case cancelled:
		text += "\n\n(command cancelled)"
	case code != 0:
		text += fmt.Sprintf("\n\nCommand exited with code %d", code)
	}
	if truncated {
		text += "\n\n[Output truncated: only its end is shown]"
	}
	return text
}

// ran is what the agent has not been told yet of the commands that were run, at most
// maxRan bytes of it: the oldest go first, and are counted.
type ran struct {
	texts []string
	bytes int
	left  int // how many were left out
}

// maxRan bounds what a prompt carries of commands; each single one fits.
const maxRan = 256 << 10

func (r *ran) add(text string) {
	r.texts = append(r.texts, text)
	r.bytes += len(text)
	for r.bytes > maxRan && len(r.texts) > 1 {
		r.bytes -= len(r.texts[0])
		r.texts = r.texts[1:]
		r.left++
	}
}

// words are the texts that stand before what the user says next.
func (r *ran) words() []string {
	if r.left == 0 {
		return r.texts
	}
	return append([]string{fmt.Sprintf("[%d earlier commands are left out]", r.left)}, r.texts...)
}

// abortBash kills what runs in the session, if anything does.
func abortBash(_ *Server, x *execution) outcome {
	x.on.stopShell()
	return outcome{}
}

func (ss *session) stopShell() {
	if ss.shell != nil {
		ss.shell.stop()
	}
}
