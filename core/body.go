package core

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Opened is the request as the hub accepted it. It comes from the hub.
type Opened struct {
	Task    TaskID    `json:"task"`
	From    Principal `json:"from"`
	Request Request   `json:"request"`
	// Hops is the number of tasks above this one in its chain of causes, and Chain the
	// agents that work on them.
	Hops  int       `json:"hops"`
	Chain []AgentID `json:"chain,omitempty"`
	// Trace is the trace of the call that opened the task.
	Trace Trace `json:"trace,omitzero"`
	// DefaultDeadline says that the deadline of the request is not the requester's own: the time that
	// people take to decide and to answer moves it, and an agent that is silent for too long ends the
	// task before.
	DefaultDeadline bool `json:"default_deadline,omitempty"`
	// Key is the mark of a request that its sender may repeat at any hub of a cluster; "" for one
	// that opens a task each time that it comes. It is the last member: a journal looks for it there.
	Key string `json:"key,omitempty"`
}

// Assigned says that the task was given to an agent. It comes from the hub.
type Assigned struct {
	Agent AgentID `json:"agent"`
	// Attempt counts from 1.
	Attempt int `json:"attempt"`
	// Dialect is that of the agent.
	Dialect string `json:"dialect,omitempty"`
	// Handover says that another agent had the conversation before; nil if none had.
	Handover *Handover `json:"handover,omitempty"`
}

// Handover is what an agent gets of a conversation that was with another agent before.
type Handover struct {
	// From is the agent that answered last.
	From AgentID `json:"from"`
	// Turns and Files are how many it gets of what it does not know yet, LeftOut how many of both it does not get.
	Turns   int `json:"turns"`
	Files   int `json:"files,omitempty"`
	LeftOut int `json:"left_out,omitempty"`
}

// Words returns the handover in a few words.
func (h Handover) Words() string {
	words := fmt.Sprintf("handed over from %s with %s", h.From, count(h.Turns, "turn"))
	if h.Files > 0 {
		words += " and " + count(h.Files, "file")
	}
	if h.LeftOut > 0 {
		words += fmt.Sprintf(", %d left out", h.LeftOut)
	}
	return words
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// Accepted says that the agent took the task.
type Accepted struct {
	// Estimate is the duration that the agent expects; zero if it named none.
	Estimate time.Duration `json:"estimate_ns,omitempty"`
}

// SessionStarted names the session of the agent for the task.
type SessionStarted struct {
	Session string `json:"session"`
}

// SessionLost says that the session of the agent is gone, and why.
type SessionLost struct {
	Reason string `json:"reason"`
}

// Thinking describes what the agent is thinking or doing.
type Thinking struct {
	Text string `json:"text"`
}

// Text is a piece of the answer. The answer is all pieces in order.
type Text struct {
	Text string `json:"text"`
}

// ToolCall says that the agent calls one of its tools.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Input is the JSON text of the input as the agent sent it; it may be invalid.
	Input string `json:"input"`
	// Parent is the id of the call that it is a part of, where an agent below the agent makes it; "" for
	// none.
	Parent string `json:"parent,omitempty"`
}

// ToolState is a step in the life of a tool call.
type ToolState struct {
	ID     string        `json:"id"`
	State  ToolCondition `json:"state"`
	Detail string        `json:"detail,omitempty"`
}

// ToolResult is the output or the error of a tool call.
type ToolResult struct {
	ID      string `json:"id"`
	Output  string `json:"output"`
	IsError bool   `json:"is_error,omitempty"`
}

// ApprovalRequested asks a person to decide on a tool call.
type ApprovalRequested struct {
	// ID is the id of the tool call.
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input string `json:"input"`
	// InputSHA256 is the SHA-256 of Input in hexadecimal digits, which the hub computes. A
	// decision may repeat it.
	InputSHA256 string `json:"input_sha256,omitempty"`
}

// InputDigest returns the SHA-256 of the input of a tool call, as [ApprovalRequested] has it.
func InputDigest(input string) string {
	sum := sha256.Sum256([]byte(input))
	return hex.EncodeToString(sum[:])
}

// IsFor reports whether the decision is on an input. For one that leaves it unsaid it is.
func (b ApprovalDecided) IsFor(input string) bool {
	return b.InputSHA256 == "" || b.InputSHA256 == InputDigest(input)
}

// ApprovalDecided answers an ApprovalRequested. It comes from the requester or the hub.
type ApprovalDecided struct {
	ID       string `json:"id"`
	Approved bool   `json:"approved"`
	// All approves the remaining calls of the task as well.
	All bool `json:"all,omitempty"`
	// By is the id of the principal who decided, or "hub".
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	// Option is the id of the agent's own option that was chosen, if its dialect offers options
	// beyond approving and denying. Agents that offered none ignore it.
	Option string `json:"option,omitempty"`
	// InputSHA256 is that of the input which was decided on; "" leaves it unsaid.
	InputSHA256 string `json:"input_sha256,omitempty"`
}

// QuestionAsked says that the agent, or a tool that it calls, asks people something. It comes from the hub.
type QuestionAsked struct {
	// ID names the question: letters, digits and dashes.
	ID string `json:"id"`
	// Text is what is asked, Header a word or two about its subject.
	Text   string `json:"question"`
	Header string `json:"header,omitempty"`
	// Options are the choices: one may be selected, or with Several any number. Without options the
	// answer is text.
	Options []Option `json:"options,omitempty"`
	Several bool     `json:"multi_select,omitempty"`
	// Until is when it times out.
	Until time.Time `json:"until"`
}

// Option is one choice of a question.
type Option struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
}

// QuestionAnswered ends a QuestionAsked. It comes from the hub.
type QuestionAnswered struct {
	ID string `json:"id"`
	// Answered says that somebody answered, with labels of the options, a text or both, or with the
	// content of a form.
	Answered bool            `json:"answered"`
	Selected []string        `json:"selected,omitempty"`
	Text     string          `json:"custom_text,omitempty"`
	Content  json.RawMessage `json:"content,omitempty"`
	// Reason says why there is no answer: a reason below, or the code of the fault with which the
	// question was refused.
	Reason string `json:"reason,omitempty"`
	// By is the id of the principal who answered or dismissed it; "" for nobody.
	By string `json:"by,omitempty"`
}

// The reasons why a question has no answer.
const (
	QuestionTimedOut  = "timeout"
	QuestionDismissed = "dismissed"
	QuestionTaskEnded = "task_ended"
	QuestionLeft      = "left" // who asked it is gone
)

// Words returns what was answered in one line: the selected labels, the content and the text, or why there is no
// answer.
func (b QuestionAnswered) Words() string {
	parts := slices.Clone(b.Selected)
	for _, more := range []string{string(b.Content), b.Text, b.Reason} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, ", ")
}

// Injected is context pushed to the agent while it works. It comes from the requester.
type Injected struct {
	ID       string            `json:"id"`
	Content  string            `json:"content"`
	Priority InjectionPriority `json:"priority"`
	// Source is where the context comes from, as the hub knows it: the id of the principal that
	// sent it, "pack:NAME", or "system" for the hub itself.
	Source string `json:"source,omitempty"`
	// Claimed is where the context comes from in the words of its sender.
	Claimed string `json:"claimed_source,omitempty"`
	// Trace is the trace of the call that pushed it.
	Trace Trace `json:"trace,omitzero"`
}

// Attribution returns Source with what the sender claims beside it, for dialects that have one
// field for both.
func (b Injected) Attribution() string {
	if b.Claimed == "" || b.Claimed == b.Source {
		return b.Source
	}
	return b.Source + " (" + b.Claimed + ")"
}

// InjectionAnswered says whether the agent accepted an Injected, and if not why.
type InjectionAnswered struct {
	ID       string `json:"id"`
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"`
}

// File is a file: an attachment of a request or a part of an answer.
type File struct {
	Name      string `json:"name"`
	MediaType string `json:"media_type,omitempty"`
	Data      []byte `json:"data"`
}

// Usage is the tokens that one call of a model used. Several in a task add up.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	Thinking   int64 `json:"thinking,omitempty"`
	// Model is the model that the agent names, "" for none; see [MaxModel].
	Model string `json:"model,omitempty"`
	// Cost is what the agent says that it cost, or what the hub has counted by its prices.
	Cost Money `json:"cost,omitzero"`
}

// MaxModel is the maximum length of the name of a model, in bytes: one that is longer is left out.
const MaxModel = 128

// Add returns the sum of u and v, which is of no one model. What is not priced adds nothing to the cost.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		Input: u.Input + v.Input, Output: u.Output + v.Output, CacheRead: u.CacheRead + v.CacheRead, CacheWrite: u.CacheWrite + v.CacheWrite,
		Thinking: u.Thinking + v.Thinking, Cost: u.Cost.Add(v.Cost),
	}
}

// Total is the sum of input, output and thinking, without the cache.
func (u Usage) Total() int64 { return u.Input + u.Output + u.Thinking }

// Retrying says that an attempt failed before any output, and that another agent is tried.
// It comes from the hub.
type Retrying struct {
	// Attempt is the one that failed, from 1; 0 if none did, and the task only moves to another hub.
	Attempt int     `json:"attempt"`
	Agent   AgentID `json:"agent"`
	Fault   *Fault  `json:"fault"`
	// Hub is the name of the hub of the cluster that owns the task from now on; "" if it stays.
	Hub string `json:"hub,omitempty"`
}

// CancelRequested says that the task is to be stopped.
type CancelRequested struct {
	// By is the id of the principal who asked, or "hub".
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
}

// ForeignFrame is a frame of a kind that the hub does not know. Peers of the same
// dialect get it verbatim from the event's Foreign.
type ForeignFrame struct {
	Dialect string `json:"dialect"`
	// Name is the name of the kind of frame in the dialect.
	Name string `json:"name"`
}

// Done ends a task that succeeded.
type Done struct {
	// Text is the whole answer if the agent sent it at once. It is ignored if there were
	// pieces of [Text].
	Text string `json:"text,omitempty"`
	// Data is the structured answer: any JSON value, or nothing.
	Data json.RawMessage `json:"data,omitempty"`
	// Truncated says that the answer was cut to stay within MaxTokens.
	Truncated bool `json:"truncated,omitempty"`
	// TokensUsed is the number of tokens that the agent named; zero if it named none.
	TokensUsed int64 `json:"tokens_used,omitempty"`
}

// Failed ends a task that failed.
type Failed struct {
	Fault *Fault `json:"fault"`
}

// Cancelled ends a task that was cancelled.
type Cancelled struct {
	Reason string `json:"reason,omitempty"`
}
