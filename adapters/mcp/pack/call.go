package pack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	hubpack "github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// call is one execution.
type call struct {
	calls     *calls
	server    *server
	execution *hubpack.Execution
	tool      listed
	known     bool // the server has the tool
	arguments strictjson.Value
	ctx       context.Context //nolint:containedctx // the lifetime of the call, which others end
	free      func()
	withdraw  context.CancelCauseFunc
	// result is what the server answered; nil before that, and for an error.
	result *core.Foreign

	mu        sync.Mutex
	idle      *time.Timer // ends a call without progress; nil while it does not run
	asking    int         // questions that wait for people
	questions timer.Pace
	reached   float64 // by progress, in this round
	moved     bool    // there was progress in this round
	detail    string  // the latest that was not shown
	shown     time.Time
	next      *timer.Timer // shows detail
}

const (
	// maxRounds is how often a call is repeated with what the server asked for.
	maxRounds = 10
	// busyTime is how long a call waits before it is repeated for a server that asks for nothing
	// but another try, and maxBusy how often.
	busyTime = 500 * time.Millisecond
	maxBusy  = 3
	// The pauses between two questions of a call that follow each other.
	firstQuestion  = 100 * time.Millisecond
	seldomQuestion = time.Second
	// showEvery is how often progress is shown, and maxDetail its maximum length in bytes.
	showEvery = 250 * time.Millisecond
	maxDetail = 1 << 10
)

// perform calls the tool of the server, with as many rounds as it needs.
func (c *call) perform() (json.RawMessage, *core.Fault) {
	if c.ctx.Err() != nil { // while it waited for its turn
		return nil, core.AsFault(context.Cause(c.ctx))
	}
	if !c.known {
		return nil, c.server.fail(core.CodeUnsupported, "has no tool %s any more: list the tools again", c.execution.Tool)
	}
	c.begin()
	defer c.end()
	input := ""
	for round, busy := 1, 0; ; round++ {
		m, err := c.send(input)
		if fault := c.failed(m, err, round); fault != nil {
			return nil, fault
		}
		switch kind, _ := m.Result.Get("resultType").Text(); {
		case m.Err != nil: // it has addresses to open
			if fault := c.openAddresses(m.Err); fault != nil {
				return nil, fault
			}
		case kind == "" || kind == wire.ResultComplete:
			c.result = &core.Foreign{Dialect: wire.Dialect, JSON: m.Result.Clone()}
			return readResult(m.Result)
		case kind == wire.ResultInputRequired:
			if m.Result.Get("inputRequests").Len() == 0 {
				if busy++; busy > maxBusy {
					return nil, c.server.fail(core.CodeOverloaded, "is busy: call again later")
				}
				if !sleep(c.ctx, busyTime) {
					return nil, core.AsFault(context.Cause(c.ctx))
				}
			}
			var fault *core.Fault
			if input, fault = c.gather(m.Result); fault != nil {
				return nil, fault
			}
		default:
			return nil, c.server.fail(core.CodeUnsupported, "answered with a result of the type %.40q, which the hub did not declare", kind)
		}
	}
}

// failed returns why what a server has sent in a round ends the call, nil if it goes on.
func (c *call) failed(m jsonrpc.Message, err error, round int) *core.Fault {
	switch {
	case c.ctx.Err() != nil:
		return core.AsFault(context.Cause(c.ctx))
	case err != nil:
		return core.AsFault(err)
	case round > maxRounds:
		return c.server.fail(core.CodeInternal, "asked for something in each of %d rounds", maxRounds)
	case m.Err != nil && m.Err.Code != wire.CodeURLElicitation:
		return faultOf(m.Err)
	case len(m.Result.Raw()) > c.server.opts.ResultBytes:
		c.server.count("too_large")
		return tooLarge(c.server.opts.ResultBytes)
	}
	return nil
}

// send sends the call once, with further members of its params.
func (c *call) send(members string) (jsonrpc.Message, error) {
	id := c.server.newID()
	c.mu.Lock()
	c.reached, c.moved = 0, false // each round has its own progress
	c.mu.Unlock()
	leave := c.server.enter(id, c)
	defer leave()
	members = `,"name":` + string(strictjson.Encode(c.tool.name)) + `,"arguments":` + string(c.execution.Input) + members
	meta := `,"progressToken":` + string(id)
	if len(c.tool.Hubs) > 0 {
		meta += `,"` + wire.MetaHops + `":` + strconv.Itoa(c.calls.session.HopsOf(c.execution.ID))
	}
	c.calls.session.TraceOf(c.execution.ID).Each(func(key, value string) { // SEP-414
		meta += `,"` + key + `":` + string(strictjson.Encode(value))
	})
	return c.server.conn.call(c.ctx, request{id: id, method: wire.MethodCallTool, params: c.server.params(c.server.era(), members, meta), call: c})
}

// gather answers what the server wants to know before it goes on (2026-07-28, basic/patterns,
// "Multi Round-Trip Requests"), and returns the members of the next round.
func (c *call) gather(result strictjson.Value) (members string, fault *core.Fault) {
	responses := []byte{}
	for key, asked := range result.Get("inputRequests").Members() {
		if method, _ := asked.Get("method").Text(); method != wire.MethodElicit {
			return "", c.server.fail(core.CodeUnsupported, "asked for %.40q, which the hub did not declare", method)
		}
		got, err := c.elicit(c.ctx, string(key), asked.Get("params"))
		if err != nil {
			return "", c.server.fail(core.CodeInternal, "asked a question that cannot be asked: %s", core.AsFault(err).Message)
		}
		responses = append(strictjson.AppendString(append(responses, ','), string(key)), ':')
		responses = append(responses, strictjson.Encode(got)...)
	}
	if len(responses) > 0 {
		members = `,"inputResponses":{` + string(responses[1:]) + "}"
	}
	if state := result.Get("requestState"); state.Exists() {
		members += `,"requestState":` + string(state.Raw())
	}
	return members, nil
}

// openAddresses asks people to open the addresses that the server names in an error
// (2025-11-25, client/elicitation, "URL Elicitation Required Error").
func (c *call) openAddresses(e *jsonrpc.Error) *core.Fault {
	asked := 0
	for one := range strictjson.ParseValid(e.Data).Get("elicitations").Items() {
		got, err := c.elicit(c.ctx, "", one)
		if err != nil || got.Action != question.Accept {
			return faultOf(e)
		}
		asked++
	}
	if asked == 0 {
		return faultOf(e)
	}
	return nil
}

// declineBefore is how long before the end of a call its questions end, so that the server learns of it.
const declineBefore = time.Second

// elicit asks the people of the call what the server calls key; where nobody answers, it is declined. An error
// means that the server's question is wrong. Meanwhile the call needs no progress.
func (c *call) elicit(ctx context.Context, key string, params strictjson.Value) (question.Answer, error) {
	c.server.count("elicitation")
	e, err := question.Elicit(params, c.server.opts.Name, key)
	if err != nil {
		return question.Answer{}, err
	}
	c.pause(1)
	defer c.pause(-1)
	if !sleep(ctx, c.untilQuestion()) {
		return question.Answer{Action: question.Cancel}, nil
	}
	answer, err := e.Ask(ctx, func(ctx context.Context, q question.Question) (question.Outcome, error) {
		if q.Until = c.execution.Deadline.Add(-declineBefore); time.Until(q.Until) <= 0 {
			return question.Outcome{}, core.NewFault(core.CodeTimeout, "there is no time left to ask")
		}
		return c.calls.session.AskCaller(ctx, c.execution.ID, q)
	})
	switch {
	case ctx.Err() != nil:
		return question.Answer{Action: question.Cancel}, nil
	case err != nil:
		return question.Answer{Action: question.Decline}, nil // there is nobody to ask
	}
	return answer, nil
}

// untilQuestion returns how long the next question waits: a server may ask again at each answer.
func (c *call) untilQuestion() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.questions.Next()
}

// begin and end bound the time without progress. The latest of it is shown before the result.
func (c *call) begin() {
	limit := c.server.opts.Timeout
	late := core.NewFault(core.CodeTimeout, "tool %s made no progress for %s (timeout of the pack)", c.execution.Tool, limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = time.AfterFunc(limit, func() { c.withdraw(late) })
	c.next = timer.New(&c.calls.workers, c.showLatest)
}

func (c *call) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show() // before the result
	c.idle.Stop()
	c.next.Stop()
	c.idle = nil
}

// pause stops the time without progress as long as people are asked.
func (c *call) pause(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking += n
	c.restart()
}

// restart begins the time without progress again. Callers hold mu.
func (c *call) restart() {
	switch {
	case c.idle == nil:
	case c.asking > 0:
		c.idle.Stop()
	default:
		c.idle.Reset(c.server.opts.Timeout)
	}
}

// progress takes a progress notification of the call. One that does not rise is none
// (2026-07-28, basic/utilities/progress).
func (c *call) progress(params strictjson.Value) {
	n, is := params.Get("progress").Number()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !is || c.moved && n <= c.reached || c.idle == nil {
		c.server.count("ignored.progress")
		return
	}
	c.reached, c.moved = n, true
	c.restart()
	waits := c.detail != ""
	c.detail = detailOf(params, n)
	switch wait := time.Until(c.shown.Add(showEvery)); {
	case waits:
		c.server.count("merged.progress") // the one before it was not shown
	case wait <= 0:
		c.show()
	default:
		c.next.Set(wait)
	}
}

// showLatest shows what is due.
func (c *call) showLatest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.show()
}

// show shows the latest progress to the caller, if it was not shown. Callers hold mu.
func (c *call) show() {
	if c.idle != nil && c.detail != "" {
		_ = c.calls.session.ProgressTool(c.execution.ID, c.detail) // an error means that nobody waits any more
		c.detail, c.shown = "", time.Now()
	}
}

// detailOf returns progress as words.
func detailOf(params strictjson.Value, n float64) string {
	message, _ := params.Get("message").Text()
	at := strconv.FormatFloat(n, 'f', -1, 64)
	if total, is := params.Get("total").Number(); is {
		at += "/" + strconv.FormatFloat(total, 'f', -1, 64)
	}
	if message == "" {
		return at
	}
	if len(message) > maxDetail {
		message = fmt.Sprintf("%.*s…", maxDetail/4, message)
	}
	return cmp.Or(message, at) + " (" + at + ")"
}
