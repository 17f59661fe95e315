package acp

import (
	"cmp"

	"github.com/dragoman-hub/dragoman/core"
)

// responseOf folds a task that is done into a response.
func responseOf(a core.Answer) Response {
	return Response{Data: orNull(joinFiles(a.Data, a.Files)), Summary: a.Text, TokensUsed: a.TokensUsed, Truncated: a.Truncated}
}

// Bodies says the response in the words of the hub: its files, what it cost, and
// the end.
func (r Response) Bodies() []core.Body {
	return bodies(r.Summary, r.Data, r.TokensUsed, r.Truncated)
}

// resultOf folds a task that has ended into a result.
func resultOf(a core.Answer) Result {
	r := Result{Status: StatusCompleted, Outcome: a.Text, Data: joinFiles(a.Data, a.Files), TokensUsed: a.TokensUsed}
	switch {
	case a.Fault != nil:
		why := words(a.Fault)
		r.Status, r.Error, r.Outcome = StatusFailed, &why, cmp.Or(a.Text, a.Fault.Message)
	case a.Truncated:
		r.Status = StatusPartial
	}
	return r
}

// Bodies says the result in the words of the hub.
func (r Result) Bodies() []core.Body {
	if r.Status != StatusFailed {
		return bodies(r.Outcome, r.Data, r.TokensUsed, r.Status == StatusPartial)
	}
	why := r.Outcome
	if r.Error != nil && *r.Error != "" {
		why = *r.Error
	}
	return []core.Body{end(faultFromWords(cmp.Or(why, "the agent failed without saying why")))}
}

// Body says the error in the words of the hub: how a task ended.
func (e *Error) Body() core.Body { return end(e.Fault()) }

// Body says the ack of a delegate in the words of the hub. A refusal is worth
// another try, elsewhere or later.
func (a Ack) Body() core.Body {
	if a.Accepted {
		return core.Accepted{Estimate: milliseconds(a.EstimatedMS)}
	}
	f := core.NewFault(core.CodeOverloaded, "the agent refused the task")
	if a.Reason != "" {
		f.Message += ": " + a.Reason
	}
	return core.Failed{Fault: f}
}

// bodies are the events that an answer in one piece stands for. What it cost is
// told as output: ACP does not say of what kind its tokens are.
func bodies(text string, data []byte, tokens int64, truncated bool) []core.Body {
	rest, files := splitFiles(data)
	var out []core.Body
	for _, f := range files {
		out = append(out, f)
	}
	if tokens > 0 {
		out = append(out, core.Usage{Output: tokens})
	}
	return append(out, core.Done{Text: text, Data: rest, Truncated: truncated, TokensUsed: tokens})
}

// end is the end of a task that the fault explains.
func end(f *core.Fault) core.Body {
	if f.Code == core.CodeCancelled {
		return core.Cancelled{Reason: f.Message}
	}
	return core.Failed{Fault: f}
}
