package editor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
)

const (
	modes    = `{"currentModeId":"auto","availableModes":[{"id":"default","name":"Manual"},{"id":"auto","name":"Auto"}]}`
	asOption = `{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"%s","options":[{"value":"default","name":"Manual"},{"value":"auto","name":"Auto"}]}`
	fast     = `{"id":"fast","name":"Fast","type":"boolean","currentValue":%s}`
	onOff    = `{"id":"fast","name":"Fast","type":"select","currentValue":"%s","options":[{"value":"on","name":"On"},{"value":"off","name":"Off"}]}`
	booleans = `{"session":{"configOptions":{"boolean":{}}}}`
)

// announces gives the card of the agent coder what it can be set to.
func (s *setup) announces(metadata map[string]string) {
	s.Helper()
	card := core.Card{ID: "coder", Dialect: "editor", MaxConcurrent: 4, Capabilities: []string{"ui"}, Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureOptions, Metadata: map[string]json.RawMessage{}}
	for name, text := range metadata {
		card.Metadata[name] = json.RawMessage(text)
	}
	if err := s.coder.Update(card); err != nil {
		s.Fatal(err)
	}
}

func options(all ...string) string { return "[" + strings.Join(all, ",") + "]" }

func TestAnEditorSeesAndSetsWhatTheAgentBehindOffers(t *testing.T) {
	withHub(t, func(s *setup) {
		s.announces(map[string]string{"modes": modes, "configOptions": options(fmt.Sprintf(fast, "false")), "models": `{"currentModelId":"x","availableModels":[{"modelId":"x","name":"X"},{"modelId":"y"}]}`})
		c := s.greeted(editor.Options{}, booleans)
		c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`)
		m := c.receive()
		session := m.text("result", "sessionId")
		model := `{"id":"model","name":"Model","category":"model","type":"select","currentValue":"x","options":[{"value":"x","name":"X"},{"value":"y","name":"y"}]}`
		want := `"modes":` + modes + `,"configOptions":` + options(fmt.Sprintf(fast, "false"), fmt.Sprintf(asOption, "auto"), model) + `}}`
		if !strings.HasSuffix(m.raw, want) {
			t.Errorf("got  %s\nwant %s", m.raw, want)
		}

		c.send(`{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"default"}}`, session)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{}}`,
			`{"sessionUpdate":"config_option_update","configOptions":`+options(fmt.Sprintf(fast, "false"), fmt.Sprintf(asOption, "default"), model)+`}`)
		c.send(`{"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"fast","type":"boolean","value":true}}`, session)
		c.want(`{"jsonrpc":"2.0","id":3,"result":{"configOptions":` + options(fmt.Sprintf(fast, "true"), fmt.Sprintf(asOption, "default"), model) + `}}`)
		c.send(`{"jsonrpc":"2.0","id":4,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"mode","value":"auto"}}`, session)
		c.want(`{"jsonrpc":"2.0","id":4,"result":{"configOptions":`+options(fmt.Sprintf(fast, "true"), fmt.Sprintf(asOption, "auto"), model)+`}}`,
			`{"sessionUpdate":"current_mode_update","currentModeId":"auto"}`)

		c.send(`{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"plan"}}`, session)
		c.wantError(5.0, -32602, `the agent has no mode "plan"; it offers default, auto`)
		c.send(`{"jsonrpc":"2.0","id":6,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"speed","value":"1"}}`, session)
		c.wantError(6.0, -32602, `the agent has no option "speed": it has fast, mode, model`)

		c.prompt(7, session, "go")
		task := s.assigned()
		if diff := cmp.Diff(core.Options{"mode": "auto", "fast": "true"}, task.Request().Options); diff != "" {
			t.Errorf("the options of the task (-want +got):\n%s", diff)
		}
		s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "current_mode_update"}, `{"sessionUpdate":"current_mode_update","currentModeId":"default"}`)
		s.say(task, core.Done{})
		c.want(`{"sessionUpdate":"current_mode_update","currentModeId":"default"}`, ended(7, "end_turn"))
		c.prompt(8, session, "go on")
		if got := s.assigned().Request().Options["mode"]; got != "default" {
			t.Errorf("got the mode %q after the agent has changed it, want default", got)
		}
	})
}

func TestWhatAUserChoosesInATurnStaysWhenTheAgentRepeatsWhatWas(t *testing.T) {
	withHub(t, func(s *setup) {
		s.announces(map[string]string{"configOptions": options(fmt.Sprintf(asOption, "auto"), fmt.Sprintf(fast, "false"))})
		c, session := s.begun(editor.Options{}, booleans)
		c.prompt(2, session, "go")
		task := s.assigned()
		c.send(`{"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"mode","value":"default"}}`, session)
		c.receive()
		says := func(mode, isFast string) {
			s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "config_option_update"},
				`{"sessionUpdate":"config_option_update","configOptions":`+options(fmt.Sprintf(asOption, mode), fmt.Sprintf(fast, isFast))+`}`)
		}
		told := func(mode, isFast string) {
			s.Helper()
			c.want(`{"sessionUpdate":"config_option_update","configOptions":` + options(fmt.Sprintf(asOption, mode), fmt.Sprintf(fast, isFast)) + `}`)
		}
		says("auto", "true")
		told("default", "true")
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn"))

		c.prompt(4, session, "go on")
		task = s.assigned()
		if got := task.Request().Options["mode"]; got != "default" {
			t.Errorf("got the mode %q in the next prompt, want default, as the user has chosen", got)
		}
		says("auto", "true") // the agent leaves the mode itself
		told("auto", "true")
		s.say(task, core.Done{})
		c.want(ended(4, "end_turn"))
		c.prompt(5, session, "and on")
		if got := s.assigned().Request().Options["mode"]; got != "auto" {
			t.Errorf("got the mode %q after the agent has changed it, want auto", got)
		}
	})
}

func TestAnEditorWithoutBooleansGetsChoicesOfTwo(t *testing.T) {
	withHub(t, func(s *setup) {
		s.announces(map[string]string{"configOptions": options(fmt.Sprintf(fast, "false"))})
		c, session := s.begun(editor.Options{}, none)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"session/set_config_option","params":{"sessionId":%q,"configId":"fast","value":"on"}}`, session)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{"configOptions":` + options(fmt.Sprintf(onOff, "on")) + `}}`)
		c.prompt(3, session, "go")
		task := s.assigned()
		if diff := cmp.Diff(core.Options{"fast": "true"}, task.Request().Options); diff != "" {
			t.Errorf("the options of the task (-want +got):\n%s", diff)
		}
		s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "config_option_update"}, `{"sessionUpdate":"config_option_update","configOptions":`+options(fmt.Sprintf(fast, "false"))+`}`)
		s.say(task, core.Done{})
		c.want(`{"sessionUpdate":"config_option_update","configOptions":`+options(fmt.Sprintf(onOff, "off"))+`}`, ended(3, "end_turn"))
	})
}

func TestAnEditorIsToldWhatTheAgentOffersOnceThatIsKnown(t *testing.T) {
	withHub(t, func(s *setup) {
		s.announces(nil)
		c, session := s.begun(editor.Options{}, booleans)
		c.prompt(2, session, "go")
		task := s.assigned()
		s.announces(map[string]string{"modes": modes, "configOptions": `"nonsense"`})
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn")) // what cannot be read is not offered
		c.prompt(3, session, "go")
		task = s.assigned()
		s.announces(map[string]string{"modes": modes})
		s.say(task, core.Done{})
		c.want(`{"sessionUpdate":"config_option_update","configOptions":`+options(fmt.Sprintf(asOption, "auto"))+`}`, ended(3, "end_turn"))
	})
}

func TestAForkKnowsWhatWasSaidBefore(t *testing.T) {
	withHub(t, func(s *setup) {
		s.announces(map[string]string{"modes": modes})
		c, session := s.begun(editor.Options{}, none)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"session/set_mode","params":{"sessionId":%q,"modeId":"default"}}`, session)
		c.receive()
		c.receive()
		c.prompt(3, session, "the word is tree")
		task := s.assigned()
		s.say(task, core.Text{Text: "noted"}, core.Done{})
		c.want(chunk("agent_message_chunk", "noted"), ended(3, "end_turn"))

		c.send(`{"jsonrpc":"2.0","id":4,"method":"session/fork","params":{"sessionId":%q,"cwd":"/b","mcpServers":[]}}`, session)
		m := c.receive()
		fork := m.text("result", "sessionId")
		if fork == "" || fork == session || m.at("result", "modes", "currentModeId") != "default" {
			t.Fatalf("got %s, want another session in the mode of the first", m.raw)
		}
		c.prompt(5, session, "the word is stone")
		s.say(s.assigned(), core.Done{})
		c.want(ended(5, "end_turn"))

		c.send(`{"jsonrpc":"2.0","id":5,"method":"session/fork","params":{"sessionId":%q,"cwd":"/b","mcpServers":[]}}`, fork)
		second := c.receive().text("result", "sessionId")
		c.prompt(9, second, "and here?")
		task = s.assigned()
		if n := len(task.Request().History); n != 2 {
			t.Errorf("a fork of a fork: got %d earlier turns, want the 2 of the first session", n)
		}
		s.say(task, core.Done{})
		c.want(ended(9, "end_turn"))

		c.prompt(6, fork, "which word?")
		task = s.assigned()
		knows := func(want ...string) {
			t.Helper()
			r := task.Request()
			var said []string
			for _, turn := range r.History {
				said = append(said, turn.Role.String()+": "+turn.Text)
			}
			if diff := cmp.Diff(want, said); diff != "" || r.Thread != core.ThreadID(fork) || r.Options["mode"] != "default" {
				t.Errorf("thread %s, options %v, history (-want +got):\n%s", r.Thread, r.Options, diff)
			}
		}
		knows("user: the word is tree", "assistant: noted")
		s.say(task, core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")})
		c.receive()
		c.prompt(7, fork, "which word?")
		task = s.assigned()
		knows("user: the word is tree", "assistant: noted")
		s.say(task, core.Text{Text: "tree"}, core.Done{})
		c.want(chunk("agent_message_chunk", "tree"), ended(7, "end_turn"))

		c.prompt(8, fork, "and before?")
		task = s.assigned()
		knows("user: the word is tree", "assistant: noted", "user: which word?", "assistant: tree")
		s.say(task, core.Done{})
		c.want(ended(8, "end_turn"))
	})
}
