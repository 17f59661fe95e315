package client_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
)

const (
	modes   = `"modes":{"currentModeId":"auto","availableModes":[{"id":"default","name":"Manual"},{"id":"auto","name":"Auto"}]}`
	mode    = `{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"auto","options":[{"value":"default","name":"Manual"},{"value":"auto","name":"Auto"}]}`
	model   = `{"id":"model","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}`
	boolean = `{"id":"fast","name":"Fast","type":"boolean","currentValue":false}`
	onOff   = `{"id":"fast","name":"Fast","type":"select","currentValue":"off","options":[{"value":"on","name":"On"},{"value":"off","name":"Off"}]}`
)

// chosen returns an editor of options with choices.
func chosen(choices ...client.Choice) func(*client.Options) {
	return func(o *client.Options) { o.Choices = choices }
}

func TestASessionIsSetAsTheSettingsSayBeforeItsFirstPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		offers  string
		choices []client.Choice
		want    []string
	}{
		"a mode": {modes, []client.Choice{{Name: "mode", Value: "default"}}, []string{`session/set_mode {"sessionId":"s1","modeId":"default"}`}},
		"a mode among the options": {modes + `,"configOptions":[` + mode + `]`, []client.Choice{{Name: "mode", Value: "default"}},
			[]string{`session/set_config_option {"sessionId":"s1","configId":"mode","value":"default"}`}},
		"what it is already":           {modes, []client.Choice{{Name: "mode", Value: "auto"}}, nil},
		"a model in a group":           {`"configOptions":[` + model + `]`, []client.Choice{{Name: "model", Value: "b"}}, []string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"b"}`}},
		"a model that is in no list":   {`"configOptions":[` + model + `]`, []client.Choice{{Name: "model", Value: "own"}}, []string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"own"}`}},
		"a model of Gemini CLI":        {modes + `,"models":{"currentModelId":"x"}`, []client.Choice{{Name: "model", Value: "y"}}, []string{`session/set_model {"sessionId":"s1","modelId":"y"}`}},
		"a boolean":                    {`"configOptions":[` + boolean + `]`, []client.Choice{{Name: "fast", Value: "on"}}, []string{`session/set_config_option {"sessionId":"s1","configId":"fast","type":"boolean","value":true}`}},
		"a boolean that is so":         {`"configOptions":[` + boolean + `]`, []client.Choice{{Name: "fast", Value: "false"}}, nil},
		"a boolean as a choice of two": {`"configOptions":[` + onOff + `]`, []client.Choice{{Name: "fast", Value: "true"}}, []string{`session/set_config_option {"sessionId":"s1","configId":"fast","value":"on"}`}},
		"an agent that does not say what it offers": {`"_meta":{}`, []client.Choice{{Name: "mode", Value: "a"}, {Name: "x", Value: "y"}},
			[]string{`session/set_mode {"sessionId":"s1","modeId":"a"}`, `session/set_config_option {"sessionId":"s1","configId":"x","value":"y"}`}},
		"several, of which one makes another": {`"configOptions":[` + model + `]`, []client.Choice{{Name: "model", Value: "b"}, {Name: "fast", Value: "true"}},
			[]string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"b"}`, `session/set_config_option {"sessionId":"s1","configId":"fast","type":"boolean","value":true}`}},
	} {
		serve(t, chosen(c.choices...), func(s *served) {
			p, stop := s.start(`{"sessionCapabilities":{"resume":{}}}`)
			asked := s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/new"), `{"sessionId":"s1",`+c.offers+`}`)
			set := func() {
				for _, want := range c.want {
					m := p.next()
					if got := m.Method + " " + string(m.Params.Raw()); got != want {
						s.Errorf("%s: the agent got %s, want %s", name, got, want)
					}
					p.updates("s1", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] default"}}`) // as Gemini CLI does
					if m.Method == "session/set_config_option" {
						p.replies(m, `{"configOptions":[`+model+`,`+boolean+`]}`)
					} else {
						p.replies(m, `{}`)
					}
				}
			}
			set()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")

			p, stop2 := s.again(p, `{"sessionCapabilities":{"resume":{}}}`) // an agent that was started again begins as it does
			_ = stop
			asked = s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/resume"), `{`+c.offers+`}`)
			set()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
			_ = stop2()
		})
	}
}

func TestATaskDoesNotRunInASessionThatCannotBeSetAsTheSettingsSay(t *testing.T) {
	for name, c := range map[string]struct {
		offers, refuses string
		choice          client.Choice
		want            string
	}{
		"a mode that it does not have":    {modes, "", client.Choice{Name: "mode", Value: "careful"}, `the agent has no mode "careful"; it offers default, auto; change options in its settings`},
		"an option that it does not have": {modes + `,"configOptions":[` + model + `]`, "", client.Choice{Name: "speed", Value: "1"}, `the agent has no option "speed": it has model, mode; change options in its settings`},
		"no modes":                        {`"configOptions":[` + model + `]`, "", client.Choice{Name: "mode", Value: "x"}, `the agent has no option "mode": it has model; change options in its settings`},
		"a value that it refuses": {`"configOptions":[` + model + `]`, "session/set_config_option", client.Choice{Name: "model", Value: "own"},
			`the agent does not take the option model=own: Invalid params; it offers a, b; change options in its settings`},
		"an agent without options": {`"_meta":{}`, "session/set_mode", client.Choice{Name: "mode", Value: "x"}, `the agent does not take the option mode=x: Invalid params; change options in its settings`},
		"nonsense":                 {`"configOptions":7`, "", client.Choice{Name: "mode", Value: "x"}, `what the agent offers to choose from cannot be read: `},
	} {
		serve(t, chosen(c.choice), func(s *served) {
			p, stop := s.start(`{"sessionCapabilities":{"close":{}}}`)
			asked := s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/new"), `{"sessionId":"s1",`+c.offers+`}`)
			if c.refuses != "" {
				p.fails(p.wants(c.refuses), -32602, "Invalid params")
			}
			p.replies(p.wants("session/close"), `{}`)
			synctest.Wait()
			if a := asked.Answer(); a.End != core.KindFailed || a.Fault.Code != core.CodeInvalid || !strings.HasPrefix(a.Fault.Message, c.want) {
				s.Errorf("%s: got %s (%v), want it failed: %s", name, a.End, a.Fault, c.want)
			}
			_ = stop()
		})
	}
}
