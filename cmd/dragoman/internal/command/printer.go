package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// printer prints the events of one task, for a person or as JSON.
//
// It is safe for concurrent use: notes come from other goroutines.
type printer struct {
	out, err       io.Writer
	screen         bool // out is a terminal
	json, thinking bool
	decides        bool   // what waits for approval is put before a person, not told
	again          string // the flag that names the hub in another command
	task           core.TaskID

	mu      sync.Mutex
	printed bool   // some text was printed
	newline bool   // and it ended with a line break
	last    string // the last character of it, which may belong together with the next
	end     core.Body
}

// unanswered says why a question has no answer, where nobody decided that.
var unanswered = map[string]string{
	core.QuestionTimedOut: "its time was over", core.QuestionTaskEnded: "the task ended before", core.QuestionLeft: "the agent that asked is gone",
}

func (p *printer) print(l client.Line, raw []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Body != nil && l.Body.Kind().Ends() {
		p.end = l.Body
	}
	if b, ok := l.Body.(core.Opened); ok {
		p.task = b.Task
	}
	if p.json {
		_, err := fmt.Fprintln(p.out, jsonText(raw))
		return err
	}
	if l.Gap != nil {
		p.notef("[events %d to %d are no longer kept]", l.Gap.From, l.Gap.To)
	}
	if b, ok := l.Body.(core.Assigned); ok && b.Handover != nil {
		p.notef("[%s]", visible(b.Handover.Words()))
	}
	return p.show(l.Body)
}

// id returns the id of the task, once it is known.
func (p *printer) id() core.TaskID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.task
}

// show prints what a person is shown of an event, which may be nil. Callers hold mu.
func (p *printer) show(body core.Body) error {
	switch b := body.(type) {
	case core.Text:
		p.printed, p.newline = true, strings.HasSuffix(b.Text, "\n")
		_, err := fmt.Fprint(p.out, p.shown(b.Text))
		return err
	case core.File:
		p.notef("[file %s, %s, %d bytes: --json has it]", visible(b.Name), visible(orDash(b.MediaType)), len(b.Data))
	case core.Retrying:
		if b.Hub != "" {
			p.notef("[it goes on at hub %s: %s]", visible(b.Hub), visible(b.Fault.Message))
			break
		}
		p.notef("[%s failed: %s; trying another]", visible(string(b.Agent)), visible(b.Fault.Message))
	case core.ApprovalRequested:
		if p.decides {
			break
		}
		call := strings.TrimPrefix(p.again+" ", " ") + decisionArgs(p.task, b.ID, b.InputSHA256)
		p.notef("[%s waits for approval: %s; 'dragoman approve %[3]s' or 'dragoman deny %[3]s' decides]", visible(b.Name), visible(b.Input), call)
	case core.ApprovalDecided:
		p.notef("[%s]", visible(verdict(b)))
	case core.QuestionAnswered:
		if why := unanswered[b.Reason]; why != "" {
			p.notef("[nobody has answered: %s]", why)
		}
	case core.Done:
		return p.done(b)
	default:
		if p.thinking {
			p.aside(b)
		}
	}
	return nil
}

// aside prints what the agent does beside answering. Callers hold mu.
func (p *printer) aside(body core.Body) {
	switch b := body.(type) {
	case core.ToolState:
		p.notef("[%s is %s%s]", visible(b.ID), b.State, visible(because(b.Detail)))
	case core.Thinking:
		p.notef("[%s]", block(strings.TrimSpace(b.Text)))
	case core.ToolCall:
		p.notef("%s[%s %s]", below(b), visible(b.Name), visible(b.Input))
	}
}

// below returns what stands before a tool call: that of a subagent is below the one that it is a part of.
func below(c core.ToolCall) string {
	if c.Parent == "" {
		return ""
	}
	return "  "
}

// note prints a line for the person on stderr; text may have more, which are indented.
func (p *printer) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notef("%s", text)
}

// notef is note. At a terminal it begins a line of its own. Callers hold mu.
func (p *printer) notef(format string, args ...any) {
	if p.screen {
		p.breakLine()
	}
	fmt.Fprintf(p.err, format+"\n", args...)
}

// shown returns an agent's text as a terminal may show it; elsewhere it stays as it is.
func (p *printer) shown(text string) string {
	if !p.screen {
		return text
	}
	before := p.last
	if _, size := utf8.DecodeLastRuneInString(text); size > 0 {
		p.last = text[len(text)-size:]
	}
	return visibleLines(before + text)[len(visibleLines(before)):]
}

func (p *printer) done(b core.Done) error {
	switch {
	case !p.printed && b.Text != "":
		fmt.Fprintln(p.out, p.shown(strings.TrimSuffix(b.Text, "\n")))
	case !p.printed && len(b.Data) > 0:
		fmt.Fprintln(p.out, jsonText(b.Data))
	case p.printed && !p.newline:
		fmt.Fprintln(p.out)
	}
	return nil
}

// outcome makes an exit code of the end of the task. interrupted means that this program
// cancelled it; it does not depend on the texts of others.
func (p *printer) outcome(interrupted bool) error {
	if p.end.Kind() != core.KindDone {
		p.breakLine()
	}
	switch b := p.end.(type) {
	case core.Failed:
		failure := fmt.Errorf("the task failed (%s): %s", b.Fault.Code, b.Fault.Message)
		if interrupted {
			return &exit{ExitInterrupted, fmt.Errorf("cancelled, and %w", failure)}
		}
		if b.Fault.Code == core.CodeTooLarge {
			failure = fmt.Errorf("%w; put what is long into a file that the agent can read, or let the agent join by native, which takes more", failure)
		}
		return &exit{codeOf(b.Fault), failure}
	case core.Cancelled:
		switch {
		case interrupted && b.Reason == interruption:
			return &exit{ExitInterrupted, errors.New("cancelled")}
		case interrupted:
			return &exit{ExitInterrupted, errors.New("cancelled" + because(b.Reason))}
		}
		return &exit{ExitFailed, errors.New("the task was cancelled" + because(b.Reason))}
	}
	return nil
}

// breakLine ends the line of an unfinished answer.
func (p *printer) breakLine() {
	if p.printed && !p.newline {
		fmt.Fprintln(p.out)
		p.newline = true
	}
}
