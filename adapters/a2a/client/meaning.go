package client

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// eventOf returns what a hub tells by a status message: the event in its metadata, which our
// server writes for what A2A has no word for. found is false where there is no event. The body
// is nil for an event that is the business of the remote hub alone.
func eventOf(m *wire.Message) (body core.Body, found bool) {
	if m == nil || m.Metadata == nil {
		return nil, false
	}
	v := strictjson.ParseValid(m.Metadata).Get(wire.MetadataEvent)
	kind, found := v.Get("kind").Text()
	k, _ := core.ParseKind(kind)
	switch k {
	case core.KindThinking, core.KindRetrying:
		return core.Thinking{Text: wire.Text(m.Parts)}, found
	case core.KindToolCall:
		return bodyIn[core.ToolCall](v), found
	case core.KindToolState:
		return bodyIn[core.ToolState](v), found
	case core.KindToolResult:
		return bodyIn[core.ToolResult](v), found
	case core.KindSessionStarted:
		return bodyIn[core.SessionStarted](v), found
	case core.KindSessionLost:
		return bodyIn[core.SessionLost](v), found
	case core.KindForeign:
		return bodyIn[core.ForeignFrame](v), found
	}
	return nil, found
}

func bodyIn[B core.Body](v strictjson.Value) core.Body {
	var b B
	if v.Decode(&b) != nil {
		return nil
	}
	return b
}

// What our server adds to the metadata of the end of a task.
const (
	metadataTruncated = "truncated"
	metadataTokens    = "tokensUsed"
)

// done returns the end of a task that was completed.
func done(u *wire.StatusUpdate, data json.RawMessage) core.Done {
	d := core.Done{Data: data}
	v := strictjson.ParseValid(u.Metadata)
	if t := v.Get(metadataTruncated); t.Kind() == strictjson.Bool {
		_ = t.Decode(&d.Truncated) // it is a flag
	}
	d.TokensUsed = tokens(v, metadataTokens)
	return d
}

// The keys under which agents put the tokens that they used into metadata: ours, and that of
// Google's Agent Development Kit.
var usageKeys = []string{wire.MetadataUsage, "adk_usage_metadata"}

// The names of token counts that are in use.
var (
	inputNames  = []string{"input", "input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "promptTokenCount", "prompt_token_count"}
	outputNames = []string{"output", "output_tokens", "outputTokens", "completion_tokens", "completionTokens", "candidatesTokenCount", "candidates_token_count"}
)

// usageOf returns the tokens in the metadata of a status or of its message, and whether there
// are any.
func usageOf(u *wire.StatusUpdate) (used core.Usage, ok bool) {
	all := []json.RawMessage{u.Metadata}
	if u.Status.Message != nil {
		all = append(all, u.Status.Message.Metadata)
	}
	for _, metadata := range all {
		for _, key := range usageKeys {
			v := strictjson.ParseValid(metadata).Get(key)
			if v.Kind() != strictjson.Object {
				continue
			}
			used = core.Usage{
				Input: tokens(v, inputNames...), Output: tokens(v, outputNames...), CacheRead: tokens(v, "cache_read"),
				CacheWrite: tokens(v, "cache_write"), Thinking: tokens(v, "thinking", "thoughtsTokenCount", "thoughts_token_count"),
			}
			if used != (core.Usage{}) {
				used.Model, _ = v.Get("model").Text()
				if c := v.Get("cost"); c.Kind() == strictjson.Object && (c.Decode(&used.Cost) != nil || !core.IsCurrency(used.Cost.Currency)) {
					used.Cost = core.Money{}
				}
				return used, true
			}
		}
	}
	return core.Usage{}, false
}

// tokens returns the first of the members that is a number of tokens, else 0.
func tokens(v strictjson.Value, names ...string) (n int64) {
	for _, name := range names {
		if m := v.Get(name); !m.Absent() && m.Decode(&n) == nil && n > 0 {
			return n
		}
	}
	return 0
}

// faultOf returns why a task failed or was rejected: the fault that our server writes, or what
// the agent says.
func faultOf(u *wire.StatusUpdate) *core.Fault {
	if v := strictjson.ParseValid(u.Metadata).Get(wire.MetadataFault); v.Kind() == strictjson.Object {
		var f core.Fault
		if v.Decode(&f) == nil && slices.Contains(core.Codes(), f.Code) {
			return &f
		}
	}
	code, did := core.CodeInternal, "failed"
	if u.Status.State == wire.StateRejected {
		code, did = core.CodeInvalid, "rejected the task"
	}
	said := strings.TrimSpace(strings.ReplaceAll(words(u), "\n", " "))
	if said == "" {
		said = "the remote agent " + did + " and gave no reason"
	}
	const most = 4 << 10
	if len(said) > most {
		said = strings.ToValidUTF8(said[:most], "") + "..."
	}
	f := core.NewFault(code, "%s", said)
	f.PeerCode = string(u.Status.State)
	return f
}

// besideStatus returns what a status says beside its text and what the hub understands; nil for
// nothing.
func besideStatus(u *wire.StatusUpdate) *core.Foreign {
	left := wire.StatusUpdate{Unknown: u.Unknown, Status: wire.Status{Unknown: u.Status.Unknown}}
	if u.Metadata != nil {
		rest, n := strictjson.ParseValid(u.Metadata).Without(wire.MetadataUsage, wire.MetadataFault, metadataTruncated, metadataTokens)
		if n > 0 {
			left.Metadata = rest
		}
	}
	said := left.Unknown != nil || left.Status.Unknown != nil || left.Metadata != nil
	if m := u.Status.Message; m != nil {
		left.Status.Message = besideText(m)
		said = said || left.Status.Message != nil
	}
	if !said {
		return nil
	}
	left.Status.State = u.Status.State
	return wire.Beside(wire.StreamResponse{StatusUpdate: &left})
}

// besideText returns what a message says beside its texts and raw files; nil for nothing.
func besideText(m *wire.Message) *wire.Message {
	left := wire.Message{Metadata: m.Metadata, Extensions: m.Extensions, References: m.References, Unknown: m.Unknown}
	said := left.Metadata != nil || left.Extensions != nil || left.References != nil || left.Unknown != nil
	for _, p := range m.Parts {
		switch p.Kind {
		case wire.PartText:
			p.Kind, p.Text = 0, ""
			if p.MediaType == "text/plain" {
				p.MediaType = ""
			}
		case wire.PartRaw:
			p.Kind, p.Raw = 0, nil
		default:
			said = true
		}
		said = said || p.Metadata != nil || p.Unknown != nil || p.MediaType != "" || p.Filename != ""
		left.Parts = append(left.Parts, p)
	}
	if !said {
		return nil
	}
	return &left
}
