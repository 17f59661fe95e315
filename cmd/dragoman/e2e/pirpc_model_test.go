package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// model is a model behind an endpoint like that of OpenAI. What it does follows from the last
// message of the user, see serve.
type model struct {
	*testing.T
	*httptest.Server
	reached chan string // what is said once a request that waits has begun

	mu    sync.Mutex
	calls map[string]int // by the message of the user
}

func newModel(t *testing.T) *model {
	m := &model{T: t, reached: make(chan string, 10), calls: map[string]int{}}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

// completion is a request for the next message.
type completion struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// text returns the text of a message.
func text(content json.RawMessage) string {
	var whole string
	if json.Unmarshal(content, &whole) == nil {
		return whole
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		whole += p.Text
	}
	return whole
}

// serve answers a request. The last line of what the user said is the word for what to do.
func (m *model) serve(w http.ResponseWriter, r *http.Request) {
	var c completion
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		m.Errorf("pi sent a request that is no JSON: %v", err)
		return
	}
	said, last := "", ""
	for _, message := range c.Messages {
		if last = text(message.Content); message.Role == "user" {
			said = last
		}
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	word := lines[len(lines)-1]
	m.mu.Lock()
	m.calls[word]++
	call := m.calls[word]
	m.mu.Unlock()
	afterTool := c.Messages[len(c.Messages)-1].Role == "tool"
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(format string, args ...any) {
		fmt.Fprintf(w, "data: "+format+"\n\n", args...)
		w.(http.Flusher).Flush()
	}
	words := func(pieces ...string) {
		for _, piece := range pieces {
			b, _ := json.Marshal(piece)
			say(`{"id":"c","choices":[{"index":0,"delta":{"content":%s}}]}`, b)
		}
	}
	end := func(reason string) {
		say(`{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"%s"}],"usage":{"prompt_tokens":5,"completion_tokens":4,"total_tokens":9}}`, reason)
		say(`[DONE]`)
	}
	tool := func(name, arguments string) {
		b, _ := json.Marshal(arguments)
		say(`{"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"%s","arguments":%s}}]}}]}`, name, b)
		end("tool_calls")
	}
	switch {
	case word == "bash" && !afterTool:
		tool("bash", `{"command":"for i in 1 2 3; do echo line $i; until [ $i = 3 ] || [ -e seen-$i ]; do sleep 0.02; done; done"}`)
	case word == "pack" && !afterTool:
		tool("sky_read", `{"of":"tomorrow"}`)
	case word == "environment" && !afterTool:
		tool("bash", `{"command":"env | grep -c DRAGOMAN_MCP_ || true"}`)
	case word == "guarded" && !afterTool:
		tool("bash", `{"command":"echo guarded"}`)
	case word == "tools":
		var names []string
		for _, t := range c.Tools {
			names = append(names, t.Function.Name)
		}
		words(strings.Join(names, " "))
		end("stop")
	case afterTool:
		words("the tool said: ", last)
		end("stop")
	case word == "unavailable" && call == 1:
		http.Error(w, "no healthy upstream", http.StatusServiceUnavailable)
	case word == "break" && call == 1:
		words("HELLO", ", wor")
		m.cut(w)
	case word == "break":
		words("HELLO, ", "world", "!")
		end("stop")
	case word == "wait":
		words("so far")
		m.reached <- word
		<-r.Context().Done()
	case word == "remember":
		words(fmt.Sprintf("%d messages", len(c.Messages)-1))
		end("stop")
	default:
		words("one ", "two ", "thr\u2028ee ", "four ", "five")
		end("stop")
	}
}

// cut ends a connection in the middle of an answer.
func (m *model) cut(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		m.Error(err)
		return
	}
	_ = conn.Close()
}
