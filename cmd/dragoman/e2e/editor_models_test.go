package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// modelStub is the model behind a coding agent. It speaks the interfaces of Anthropic, OpenAI (two)
// and Gemini. What it does follows from the word after the last "please" of the user.
type modelStub struct {
	*httptest.Server
	calls   atomic.Int64
	tools   map[string]toolUse // by the word that has the model use them
	reached chan struct{}      // gets one once an answer waits
}

// toolUse is a tool of an agent, and what the model gives it.
type toolUse struct {
	name   string
	input  string // as JSON, or a text for a custom tool
	custom bool
}

func newModelStub(t *testing.T) *modelStub {
	m := &modelStub{reached: make(chan struct{}, 10)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// modelRequest is what a request for the next message says.
type modelRequest struct {
	said     string // the last message of the user that says what to do
	body     string
	result   string // the message with the result of a tool, if that comes last
	streamed bool
}

// act is what the model does: it says pieces, calls the tool, or waits after the pieces.
type act struct {
	pieces []string
	tool   string // its word
	waits  bool
}

var (
	wordOf   = regexp.MustCompile(`please (\w+)`)
	colour   = regexp.MustCompile(`\b(ochre|mauve)\b`)
	reminder = regexp.MustCompile(`(?s)<system-reminder>.*?</system-reminder>`)
)

// does returns what follows from a request.
func (r modelRequest) does() act {
	words := wordOf.FindAllStringSubmatch(reminder.ReplaceAllString(r.said, ""), -1)
	word := ""
	if len(words) > 0 {
		word = words[len(words)-1][1]
	}
	switch {
	case r.result != "" && word == "write":
		return act{pieces: []string{"It ", "is done."}}
	case r.result != "" && word == "ask":
		return act{pieces: append([]string{"You said "}, colour.FindAllString(r.result, -1)...)}
	case word == "hello":
		return act{pieces: []string{"HELLO, ", "world!"}}
	case word == "write", word == "ask":
		return act{tool: word}
	case word == "wait":
		return act{pieces: []string{"so far"}, waits: true}
	case word == "remember" && strings.Contains(r.body, "please hello"):
		return act{pieces: []string{"You said ", "hello."}}
	case word == "remember":
		return act{pieces: []string{"You said nothing."}}
	}
	return act{pieces: []string{"ok"}}
}

func (m *modelStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v := map[string]any{}
	_ = json.Unmarshal(body, &v)
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(event, format string, args ...any) {
		if event != "" {
			_, _ = fmt.Fprintf(w, "event: %s\n", event)
		}
		_, _ = fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	id := fmt.Sprint(m.calls.Add(1))
	said := modelRequest{body: string(body), streamed: v["stream"] == true}
	var speak func(act, func(event, format string, args ...any), string)
	switch {
	case strings.HasSuffix(r.URL.Path, "/messages"):
		said.said, said.result = lastOf(v["messages"], "tool_result")
		speak = m.anthropic
	case strings.HasSuffix(r.URL.Path, "/responses"):
		said.said, said.result = lastOf(v["input"], "function_call_output", "custom_tool_call_output")
		speak = m.responses
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		said.said, said.result = lastOf(v["messages"], "tool")
		speak = m.completions
	case strings.Contains(r.URL.Path, ":streamGenerateContent"):
		said.said, said.result = lastOf(v["contents"], "functionResponse")
		speak, said.streamed = m.gemini, true
	case strings.Contains(r.URL.Path, ":generateContent"): // the router of models
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"{\"reasoning\":\"simple\",\"model_choice\":\"flash\",\"complexity_score\":1,\"complexity_reasoning\":\"simple\"}"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4,"totalTokenCount":9}}`)
		return
	default:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":{"message":"not here","type":"not_found_error"}}`)
		return
	}
	if !said.streamed { // a title, or what is to be suggested
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9},"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`)
		return
	}
	does := said.does()
	if does.waits {
		speak(does, say, id)
		m.reached <- struct{}{}
		<-r.Context().Done()
		return
	}
	speak(does, say, id)
}

// lastOf returns the text of the last message of the user that says what to do, and the message with the result of
// a tool if that comes last, which is of one of these types or roles.
func lastOf(messages any, results ...string) (said, result string) {
	all, _ := messages.([]any)
	is := func(kind any) bool {
		name, _ := kind.(string)
		return slices.Contains(results, name)
	}
	for _, m := range all {
		message, _ := m.(map[string]any)
		if result = ""; is(message["type"]) || is(message["role"]) {
			result = string(plainJSON(message))
			continue
		}
		parts, _ := message["content"].([]any)
		if text, whole := message["content"].(string); whole {
			parts = []any{map[string]any{"text": text}}
		}
		if more, has := message["parts"].([]any); has {
			parts = more
		}
		var text string
		for _, p := range parts {
			part, _ := p.(map[string]any)
			if is(part["type"]) || part["functionResponse"] != nil {
				result = string(plainJSON(message))
			}
			if t, has := part["text"].(string); has {
				text += t + "\n"
			}
		}
		if message["role"] == "user" && strings.Contains(text, "please ") {
			said = text
		}
	}
	return said, result
}

func quotedJSON(text string) string {
	b, _ := json.Marshal(text)
	return string(b)
}

// anthropic speaks as Anthropic's messages.
func (m *modelStub) anthropic(a act, say func(event, format string, args ...any), id string) {
	say("message_start", `{"type":"message_start","message":{"id":"msg_%s","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}}`, id)
	if use := m.tools[a.tool]; a.tool != "" {
		say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_%s","name":%q,"input":{}}}`, id, use.name)
		say("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`, quotedJSON(use.input))
	} else {
		say("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
		for _, piece := range a.pieces {
			say("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":%s}}`, quotedJSON(piece))
		}
		if a.waits {
			return
		}
	}
	reason := map[bool]string{true: "tool_use", false: "end_turn"}[a.tool != ""]
	say("content_block_stop", `{"type":"content_block_stop","index":0}`)
	say("message_delta", `{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":4}}`, reason)
	say("message_stop", `{"type":"message_stop"}`)
}

// responses speaks as OpenAI's responses.
func (m *modelStub) responses(a act, say func(event, format string, args ...any), id string) {
	say("response.created", `{"type":"response.created","response":{"id":"resp_%s","object":"response","status":"in_progress","model":"m","output":[]}}`, id)
	item := fmt.Sprintf(`{"type":"message","id":"msg_%s","role":"assistant","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, id, quotedJSON(strings.Join(a.pieces, "")))
	switch use := m.tools[a.tool]; {
	case use.custom:
		item = fmt.Sprintf(`{"type":"custom_tool_call","id":"ct_%s","call_id":"call_%[1]s","name":%q,"input":%s,"status":"completed"}`, id, use.name, quotedJSON(use.input))
		say("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":%s}`, item)
	case a.tool != "":
		item = fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":"call_%[1]s","name":%q,"arguments":%s,"status":"completed"}`, id, use.name, quotedJSON(use.input))
		say("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":%s}`, item)
	default:
		say("response.output_item.added", `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_%s","role":"assistant","status":"in_progress","content":[]}}`, id)
		say("response.content_part.added", `{"type":"response.content_part.added","item_id":"msg_%s","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`, id)
		for _, piece := range a.pieces {
			say("response.output_text.delta", `{"type":"response.output_text.delta","item_id":"msg_%s","output_index":0,"content_index":0,"delta":%s}`, id, quotedJSON(piece))
		}
		if a.waits {
			return
		}
		say("response.output_text.done", `{"type":"response.output_text.done","item_id":"msg_%s","output_index":0,"content_index":0,"text":%s}`, id, quotedJSON(strings.Join(a.pieces, "")))
	}
	say("response.output_item.done", `{"type":"response.output_item.done","output_index":0,"item":%s}`, item)
	say("response.completed", `{"type":"response.completed","response":{"id":"resp_%s","object":"response","status":"completed","model":"m","output":[%s],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":9}}}`, id, item)
}

// completions speaks as OpenAI's chat completions.
func (m *modelStub) completions(a act, say func(event, format string, args ...any), id string) {
	chunk := func(delta, reason string) {
		say("", `{"id":"c%s","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`, id, delta, reason)
	}
	chunk(`{"role":"assistant","content":""}`, "null")
	reason := `"stop"`
	if use := m.tools[a.tool]; a.tool != "" {
		reason = `"tool_calls"`
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call_%s","type":"function","function":{"name":%q,"arguments":%s}}]}`, id, use.name, quotedJSON(use.input)), "null")
	}
	for _, piece := range a.pieces {
		chunk(`{"content":`+quotedJSON(piece)+`}`, "null")
	}
	if a.waits {
		return
	}
	chunk(`{}`, reason)
	say("", `{"id":"c%s","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}`, id)
	say("", "[DONE]")
}

// gemini speaks as the Gemini API.
func (m *modelStub) gemini(a act, say func(event, format string, args ...any), _ string) {
	chunk := func(part, end string) {
		say("", `{"candidates":[{"content":{"role":"model","parts":[%s]},"index":0%s}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":4,"totalTokenCount":9}}`, part, end)
	}
	const stop = `,"finishReason":"STOP"`
	if use := m.tools[a.tool]; a.tool != "" {
		chunk(fmt.Sprintf(`{"functionCall":{"name":%q,"args":%s}}`, use.name, use.input), stop)
		return
	}
	for i, piece := range a.pieces {
		end := ""
		if i == len(a.pieces)-1 && !a.waits {
			end = stop
		}
		chunk(`{"text":`+quotedJSON(piece)+`}`, end)
	}
}
