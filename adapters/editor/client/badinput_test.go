package client_test

import (
	"context"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestWhatAnAgentSaysWrongIsCountedAndDisturbsNothing(t *testing.T) {
	for _, c := range []struct{ name, line, count string }{
		{"garbage", `npm warn deprecated punycode`, "editor.garbage"},
		{"an empty line", ``, "editor.garbage"},
		{"a batch", `[{"jsonrpc":"2.0"}]`, "editor.garbage"},
		{"two keys of one name", `{"jsonrpc":"2.0","method":"session/update","method":"x"}`, "editor.garbage"},
		{"a response that nobody waits for", `{"jsonrpc":"2.0","id":999,"result":{}}`, "editor.unknown_response"},
		{"an error without an id", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`, "editor.unknown_response"},
		{"an update of an unknown session", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":{"sessionUpdate":"plan"}}}`, "editor.unknown_session"},
		{"an update without a kind", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{}}}`, "editor.bad_update"},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"_vendor/hello","params":{}}`, "editor.unknown_notification"},
		{"an extension", `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":77}}`, ""},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			p.text("s1", "before ")
			p.says(c.line)
			p.text("s1", "after")
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			p.replies(prompt, `{"stopReason":"cancelled"}`) // once more
			s.settle()
			if a := asked.Answer(); a.End != core.KindDone || a.Text != "before after" {
				s.Errorf("%s: got %s with %q, want the whole answer", c.name, a.End, a.Text)
			}
			if c.count != "" && s.counted(c.count) == 0 {
				s.Errorf("%s: %s was not counted", c.name, c.count)
			}
			_ = stop()
		})
	}
}

func TestWhatTheHubDoesNotOfferIsRefusedWithItsReason(t *testing.T) {
	for _, c := range []struct{ method, params, want string }{
		{"fs/read_text_file", `{"sessionId":"s1","path":"/etc/passwd"}`, "fs/read_text_file: the hub has no editor's files: it declared fs false (code -32601)"},
		{"terminal/create", `{"sessionId":"s1","command":"rm"}`, "terminal/create: the hub has no terminals: it declared terminal false (code -32601)"},
		{"_vendor/ask", `{}`, `unknown method "_vendor/ask" (code -32601)`},
		{"session/request_permission", `{"sessionId":"nobody","toolCall":{"toolCallId":"t"},"options":[]}`, `{"outcome":{"outcome":"cancelled"}}`},
		{"elicitation/create", `{"sessionId":"nobody","mode":"form","message":"m","requestedSchema":{}}`, `{"action":"cancel"}`},
		{"session/request_permission", `{"sessionId":"s1","toolCall":{"toolCallId":"t"},"options":[]}`, `options: missing; send at least one option (code -32602)`},
		{"elicitation/create", `{"sessionId":"s1","mode":"dance","message":"m"}`, `mode: want form or url, got "dance" (code -32602)`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			p.says(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, c.method, c.params)
			if got := p.answers(`"q"`); got != c.want {
				s.Errorf("%s: got %s, want %s", c.method, got, c.want)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
			_ = stop()
		})
	}
}

func TestARequestThatCannotBeReadIsAnsweredWithWhatIsWrong(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		p.says(`{"jsonrpc":"2.0","id":3,"method":"session/request_permission","params":"x"}`)
		if got := p.answers("3"); got != `params: want an object or an array, got "x" (code -32600)` {
			s.Errorf("got %s", got)
		}
		_ = stop()
	})
}

func TestAnAnswerThatCannotBeReadFailsTheTask(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		p.says(`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"both"}}`, p.wants("session/prompt").ID)
		s.tells(asked, `failed {"fault":{"code":"internal","message":"the prompt: the agent answered: the answer of the agent is not valid: a response has a result or an error, this one has both","peer_code":"-32603"}}`)
		_ = stop()
	})
}

// rejecting is a connection that refuses what is too long, of which it keeps so many bytes at
// either end.
type rejecting struct {
	link.Conn[[]byte, []byte]
	keep int
}

func (r *rejecting) Receive(ctx context.Context) ([]byte, error) {
	m, err := r.Conn.Receive(ctx)
	if err != nil || !strings.Contains(string(m), "too long") {
		return m, err
	}
	n := min(r.keep, len(m))
	return nil, &link.Reject{Cause: link.TooLarge, Text: "too long", Size: 11 << 20, Limit: 10 << 20, Head: string(m[:n]), Tail: string(m[len(m)-n:])}
}

// serveRejecting is serve with a connection that refuses what is too long.
func serveRejecting(t *testing.T, keep int, test func(s *served)) {
	t.Helper()
	serve(t, func(o *client.Options) {
		dial := o.Dial
		o.Dial = func(ctx context.Context, args ...string) (link.Conn[[]byte, []byte], error) {
			conn, err := dial(ctx, args...)
			return &rejecting{Conn: conn, keep: keep}, err
		}
	}, test)
}

const (
	skipped = `foreign {"dialect":"editor","name":"line_too_long"} + {"lost_bytes":11534336,"limit_bytes":10485760}`
	padding = "too long, with a text of which neither end says anything at all, as the ends of it are too short"
)

func TestTheTurnOfALineOverTheLimitSaysThatItIsNotWhole(t *testing.T) {
	for _, keep := range []int{100, 10} { // with the id of its session, and without
		serveRejecting(t, keep, func(s *served) {
			p, stop := s.start(`{}`)
			asked, other := s.ask("x"), s.ask("y")
			one, two := p.wants("session/new"), p.wants("session/new")
			p.replies(one, `{"sessionId":"s1"}`)
			first := p.wants("session/prompt")
			p.replies(two, `{"sessionId":"s2"}`)
			second := p.wants("session/prompt")
			if !strings.Contains(string(first.Params.Raw()), `"x"`) {
				asked, other = other, asked
			}
			p.text("s1", "before ")
			p.text("s1", padding)
			p.text("s1", "after")
			p.replies(first, `{"stopReason":"end_turn"}`)
			p.replies(second, `{"stopReason":"end_turn"}`)
			s.tells(asked, `text {"text":"before "}`, skipped, `text {"text":"after"}`, `done {"truncated":true}`)
			if keep == 100 {
				s.tells(other, `done {}`)
			} else {
				s.tells(other, skipped, `done {"truncated":true}`)
			}
			if s.counted("editor.line_too_long") != 1 {
				s.Error("the line was not counted")
			}
			_ = stop()
		})
	}
}

func TestAnAnswerOverTheLimitFailsTheTask(t *testing.T) {
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn","_meta":"` + padding + `"}}`,
		`{"result":{"stopReason":"end_turn","_meta":"` + padding + `"},"id":%s,"jsonrpc":"2.0"}`,
		`{"result":{"stopReason":"end_turn","_meta":"` + padding + `"},"id":%s,"extra":[1]}`, // of the only call that waits
	} {
		serveRejecting(t, 60, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			p.says(answer, p.wants("session/prompt").ID)
			s.tells(asked, `failed {"fault":{"code":"internal","message":"the prompt: the agent answered: its answer has 11534336 bytes, the limit is 10485760","peer_code":"-32603"}}`)
			_ = stop()
		})
	}
}

func TestARequestOverTheLimitIsRefused(t *testing.T) {
	serveRejecting(t, 60, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.says(`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"` + padding + `"}}}`)
		if got := p.answers("0"); !strings.Contains(got, "the message has 11534336 bytes, the limit is 10485760") {
			s.Errorf("got %s, want it refused with the limit", got)
		}
		p.says(`{"jsonrpc":"2.0","method":"_x/notify","params":{"sessionId":"s1","x":"` + padding + `"}}`) // tells the turn nothing
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, "done {}")
		_ = stop()
	})
}

// FuzzRun sends lines to the hub in the middle of a turn, and checks that the turn ends by its
// own answer.
func FuzzRun(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"diff","path":"/a","newText":"b"}]}}}`,
		`{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"","kind":"allow_once"}]}}`,
		`{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"sessionId":"s1","mode":"form","message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string"}}}}}`,
		`{"jsonrpc":"2.0","id":0,"method":"fs/read_text_file"}`, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`, `garbage`, `[]`,
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.ContainsAny(line, "\n\r") {
			return
		}
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			go func() { // whatever the hub answers
				for {
					if _, err := p.end.Receive(s.Context()); err != nil {
						return
					}
				}
			}()
			p.says("%s", line)
			p.says("%s", line)
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.settle()
			if a := asked.Answer(); a.End != core.KindDone && !strings.Contains(line, string(prompt.ID)) {
				s.Errorf("after %s: got %s (%v), want it done", line, a.End, a.Fault)
			}
			_ = stop()
		})
	})
}
