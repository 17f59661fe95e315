package client_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAFileIsTheBlockThatTheAgentTakes(t *testing.T) {
	png := core.File{Name: "a.png", MediaType: "image/png", Data: []byte{0x89, 'P'}}
	wav := core.File{Name: "a.wav", MediaType: "audio/wav", Data: []byte{0, 1}}
	text := core.File{Name: "a b.txt", MediaType: "text/plain", Data: []byte("hi ``` there")}
	for _, c := range []struct {
		capabilities string
		file         core.File
		want         string // "" for a refusal
	}{
		{`{"image":true}`, png, `{"type":"image","data":"iVA=","mimeType":"image/png"}`},
		{`{"audio":true}`, wav, `{"type":"audio","data":"AAE=","mimeType":"audio/wav"}`},
		{`{"embeddedContext":true}`, text, `{"type":"resource","resource":{"mimeType":"text/plain","text":"hi ` + "```" + ` there","uri":"attachment:a%20b.txt"}}`},
		{`{"embeddedContext":true}`, png, `{"type":"resource","resource":{"uri":"attachment:a.png","mimeType":"image/png","blob":"iVA="}}`},
		{`{}`, text, `{"type":"text","text":"File a b.txt:\n` + "````" + `\nhi ` + "```" + ` there\n` + "````" + `"}`},
		{`{}`, png, ``},
		{`{"audio":true}`, png, ``},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{"promptCapabilities":` + c.capabilities + `}`)
			asked := s.open(core.Request{Content: "look", Attachments: []core.File{c.file}})
			p.begins("s1")
			if c.want == "" {
				s.settle()
				if f := asked.Answer().Fault; f == nil || f.Code != core.CodeUnsupported {
					s.Errorf("%s: %s: got %v, want it refused as unsupported", c.capabilities, c.file.Name, f)
				}
				_ = stop()
				return
			}
			prompt := p.wants("session/prompt")
			if got, want := string(prompt.Params.Get("prompt").Raw()), `[{"type":"text","text":"look"},`+c.want+`]`; got != want {
				s.Errorf("%s:\n got %s\nwant %s", c.capabilities, got, want)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.wait(asked)
			_ = stop()
		})
	}
}

func TestAPromptThatWasNotSentTakesNoTurnsFromTheNext(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		other := s.other("b", "from b")
		s.wait(other("t", "earlier"))
		refused := s.open(core.Request{Content: "look", Thread: "t", Attachments: []core.File{{Name: "a", Data: []byte{0}}}})
		p.begins("s1")
		s.settle()
		if f := refused.Answer().Fault; f == nil || f.Code != core.CodeUnsupported {
			s.Fatalf("got %v, want the file refused", f)
		}
		if prompt := s.turn(p, "s1", "t", "who?", "me"); !strings.Contains(prompt, "from b") {
			s.Errorf("got the prompt %s, want the turns before it", prompt)
		}
		if prompt := s.turn(p, "s1", "t", "and now?", "me"); strings.Contains(prompt, "from b") {
			s.Errorf("got the prompt %s, want it without the turns that the session has", prompt)
		}
		_ = stop()
	})
}

func TestATurnThatFellOutOfTheHistoryHidesNoTurn(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		other := s.other("b", strings.Repeat("from b ", 5000))
		s.wait(other("t", "between"))
		s.wait(other("t", "later")) // the history has room for one of them
		if prompt := s.turn(p, "s1", "t", "third", "three"); strings.Contains(prompt, "first") || !strings.Contains(prompt, "later") {
			s.Errorf("got the prompt %.300s, want what is left of the history", prompt)
		}
		_ = stop()
	})
}

func TestACancelledTurnIsNotToldTheTurnsBeforeItAgain(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		asked := s.open(core.Request{Content: "second", Thread: "t"})
		p.replies(p.wants("session/prompt"), `{"stopReason":"cancelled"}`)
		s.told(asked)
		if prompt := s.turn(p, "s1", "t", "third", "three"); strings.Contains(prompt, "first") {
			s.Errorf("got the prompt %s, want it without the turn that the session has", prompt)
		}
		_ = stop()
	})
}

func TestWhatTheProtocolHasNoWordForIsInTheText(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.open(core.Request{Content: "who?", Data: json.RawMessage(`{"week":12}`), Context: json.RawMessage(`{"a":1}`), Domain: "x.y", MaxTokens: 9})
		p.begins("s1")
		prompt := p.wants("session/prompt")
		want := `[{"type":"text","text":"who?\n\nData:\n` + "```json\\n" + `{\"week\":12}\n` + "```" + `\n\nContext:\n` + "```json\\n" + `{\"a\":1}\n` + "```" + `\n\nDomain: x.y\n\nAnswer in at most 9 tokens."}]`
		if got := string(prompt.Params.Get("prompt").Raw()); got != want {
			s.Errorf("got  %s\nwant %s", got, want)
		}
		if got := s.counted("editor.folded.opened"); got != 1 {
			s.Errorf("got %d requests counted as folded, want 1", got)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		synctest.Wait()
		s.turn(p, "s2", "", "plain", "yes")
		if got := s.counted("editor.folded.opened"); got != 1 {
			s.Errorf("after a request that is text alone: got %d counted as folded, want 1", got)
		}
		_ = stop()
	})
}

func TestARequestOfWhichTheAgentWouldSeeNothingIsRefused(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.open(core.Request{Foreign: &core.Foreign{Dialect: "acp", JSON: json.RawMessage(`{"kind":"wave"}`)}})
		p.begins("s1")
		s.settle()
		if f := asked.Answer().Fault; f == nil || f.Code != core.CodeUnknownKind || s.counted("editor.refused.opened") != 1 {
			s.Errorf("got %v, counted %d times; want unknown_kind, counted once", f, s.counted("editor.refused.opened"))
		}
		_ = stop()
	})
}

func TestThePromptOfAnEditorReachesTheAgentAsItIs(t *testing.T) {
	foreign := &core.Foreign{Dialect: "editor", JSON: json.RawMessage(`{"prompt":[{"type":"text","text":"look","annotations":{"priority":1}},{"type":"resource","resource":{"uri":"file:///a","text":"x"}},{"type":"resource_link","uri":"file:///b","name":"b"}],"_meta":{"k":1}}`)}
	for _, c := range []struct{ capabilities, want string }{
		{`{"promptCapabilities":{"embeddedContext":true}}`, `{"sessionId":"s1","prompt":[{"type":"text","text":"look","annotations":{"priority":1}},{"type":"resource","resource":{"uri":"file:///a","text":"x"}},{"type":"resource_link","uri":"file:///b","name":"b"}],"_meta":{"k":1}}`},
		{`{}`, `{"sessionId":"s1","prompt":[{"type":"text","text":"look"},{"type":"text","text":"File a:\n` + "```" + `\nx\n` + "```" + `"}]}`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(c.capabilities)
			s.open(core.Request{Content: "look", Attachments: []core.File{{Name: "a", Data: []byte("x")}}, Foreign: foreign})
			p.begins("s1")
			prompt := p.wants("session/prompt")
			if got := string(prompt.Params.Raw()); got != c.want {
				s.Errorf("%s:\n got %s\nwant %s", c.capabilities, got, c.want)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			synctest.Wait()
			_ = stop()
		})
	}
}

func TestAPromptCarriesTheTraceOfItsTask(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		in := core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
		asked, err := s.user.Open(core.Request{To: core.ToAgent("a"), Content: "look"}, hub.OpenOptions{Trace: in, Unwatched: true})
		if err != nil {
			s.Fatal(err)
		}
		p.begins("s1")
		prompt := p.wants("session/prompt")
		if got := wire.TraceOf(prompt.Params); got != in {
			s.Errorf("got the trace %+v, want %+v", got, in)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
}
