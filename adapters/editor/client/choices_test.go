package client_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/task"
)

const (
	modes   = `"modes":{"currentModeId":"auto","availableModes":[{"id":"default","name":"Manual"},{"id":"auto","name":"Auto"}]}`
	mode    = `{"id":"mode","name":"Mode","category":"mode","type":"select","currentValue":"auto","options":[{"value":"default","name":"Manual"},{"value":"auto","name":"Auto"}]}`
	model   = `{"id":"model","name":"Model","category":"model","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]}`
	boolean = `{"id":"fast","name":"Fast","type":"boolean","currentValue":false}`
	onOff   = `{"id":"fast","name":"Fast","type":"select","currentValue":"off","options":[{"value":"on","name":"On"},{"value":"off","name":"Off"}]}`
)

// set returns an editor of options that sets sessions.
func set(options core.Options) func(*client.Options) {
	return func(o *client.Options) { o.Set = options }
}

func TestASessionIsSetAsTheSettingsSayBeforeItsFirstPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		offers string
		set    core.Options
		want   []string
	}{
		"a mode": {modes, core.Options{"mode": "default"}, []string{`session/set_mode {"sessionId":"s1","modeId":"default"}`}},
		"a mode among the options": {modes + `,"configOptions":[` + mode + `]`, core.Options{"mode": "default"},
			[]string{`session/set_config_option {"sessionId":"s1","configId":"mode","value":"default"}`}},
		"what it is already":           {modes, core.Options{"mode": "auto"}, nil},
		"a model in a group":           {`"configOptions":[` + model + `]`, core.Options{"model": "b"}, []string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"b"}`}},
		"a model that is in no list":   {`"configOptions":[` + model + `]`, core.Options{"model": "own"}, []string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"own"}`}},
		"a model of Gemini CLI":        {modes + `,"models":{"currentModelId":"x"}`, core.Options{"model": "y"}, []string{`session/set_model {"sessionId":"s1","modelId":"y"}`}},
		"a boolean":                    {`"configOptions":[` + boolean + `]`, core.Options{"fast": "on"}, []string{`session/set_config_option {"sessionId":"s1","configId":"fast","type":"boolean","value":true}`}},
		"a boolean that is so":         {`"configOptions":[` + boolean + `]`, core.Options{"fast": "false"}, nil},
		"a boolean as a choice of two": {`"configOptions":[` + onOff + `]`, core.Options{"fast": "true"}, []string{`session/set_config_option {"sessionId":"s1","configId":"fast","value":"on"}`}},
		"an agent that does not say what it offers": {`"_meta":{}`, core.Options{"mode": "a", "x": "y"},
			[]string{`session/set_mode {"sessionId":"s1","modeId":"a"}`, `session/set_config_option {"sessionId":"s1","configId":"x","value":"y"}`}},
		"several, of which one makes another": {`"configOptions":[` + model + `]`, core.Options{"model": "b", "fast": "true"},
			[]string{`session/set_config_option {"sessionId":"s1","configId":"model","value":"b"}`, `session/set_config_option {"sessionId":"s1","configId":"fast","type":"boolean","value":true}`}},
	} {
		serve(t, set(c.set), func(s *served) {
			p, stop := s.start(`{"sessionCapabilities":{"resume":{}}}`)
			asked := s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/new"), `{"sessionId":"s1",`+c.offers+`}`)
			chosen := func() {
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
			chosen()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")

			p, stop2 := s.again(p, `{"sessionCapabilities":{"resume":{}}}`) // an agent that was started again begins as it does
			_ = stop
			asked = s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/resume"), `{`+c.offers+`}`)
			chosen()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
			_ = stop2()
		})
	}
}

func TestATaskDoesNotRunInASessionThatCannotBeSetAsTheSettingsSay(t *testing.T) {
	for name, c := range map[string]struct {
		offers, refuses string
		set             core.Options
		want            string
	}{
		"a mode that it does not have":    {modes, "", core.Options{"mode": "careful"}, `the agent has no mode "careful"; it offers default, auto; change options in its settings`},
		"an option that it does not have": {modes + `,"configOptions":[` + model + `]`, "", core.Options{"speed": "1"}, `the agent has no option "speed": it has model, mode; change options in its settings`},
		"no modes":                        {`"configOptions":[` + model + `]`, "", core.Options{"mode": "x"}, `the agent has no option "mode": it has model; change options in its settings`},
		"a value that it refuses": {`"configOptions":[` + model + `]`, "session/set_config_option", core.Options{"model": "own"},
			`the agent does not take the option model=own: Invalid params; it offers a, b; change options in its settings`},
		"an agent without options": {`"_meta":{}`, "session/set_mode", core.Options{"mode": "x"}, `the agent does not take the option mode=x: Invalid params; change options in its settings`},
		"nonsense":                 {`"configOptions":7`, "", core.Options{"mode": "x"}, `what the agent offers to choose from cannot be read: `},
	} {
		serve(t, set(c.set), func(s *served) {
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

// offered is what the agent of a test offers.
const offered = modes + `,"configOptions":[` + mode + `,` + model + `,` + boolean + `]`

func TestATaskIsSetAsItWantsAndTheNextOneAsBefore(t *testing.T) {
	serve(t, set(core.Options{"mode": "default"}), func(s *served) {
		p, stop := s.start(`{}`)
		ask := func(options core.Options) *task.Task {
			return s.open(core.Request{Content: "x", Thread: "t", Options: options})
		}
		sets := func(want ...string) {
			s.Helper()
			for _, w := range want {
				m := p.wants("session/set_config_option")
				if got := string(m.Params.Raw()); got != `{"sessionId":"s1","configId":`+w+`}` {
					s.Errorf("the agent got %s, want %s", got, w)
				}
				p.replies(m, `{}`)
			}
		}
		done := func(asked *task.Task) {
			s.Helper()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
		}
		asked := ask(core.Options{"fast": "on", "mode": "auto", "model": "b"})
		p.replies(p.wants("session/new"), `{"sessionId":"s1",`+offered+`}`)
		sets(`"mode","value":"default"`, `"model","value":"b"`, `"mode","value":"auto"`, `"fast","type":"boolean","value":true`)
		done(asked)

		asked = ask(core.Options{"model": "b"})
		sets(`"mode","value":"default"`, `"fast","type":"boolean","value":false`)
		done(asked)

		asked = ask(nil)
		sets(`"model","value":"a"`)
		p.updates("s1", `{"sessionUpdate":"current_mode_update","currentModeId":"auto"}`) // the agent itself changes it
		done2 := p.wants("session/prompt")
		p.replies(done2, `{"stopReason":"end_turn"}`)
		s.wait(asked)

		asked = ask(core.Options{"mode": "auto"})
		done(asked)
		asked = ask(nil)
		done(asked)
		_ = stop()
	})
}

func TestWhatATaskHasSetIsUndoneAfterARestartOfTheHub(t *testing.T) {
	for name, ended := range map[string]bool{"the task was done": true, "the hub was killed in it": false} {
		log := &coretest.MemoryLog{}
		edit := func(o *client.Options) { o.Sessions = log }
		const can = `{"sessionCapabilities":{"resume":{}}}`
		serve(t, edit, func(s *served) {
			p, stop := s.start(can)
			asked := s.open(core.Request{Content: "x", Thread: "t", Options: core.Options{"model": "b"}})
			p.replies(p.wants("session/new"), `{"sessionId":"s1",`+offered+`}`)
			p.replies(p.wants("session/set_config_option"), `{}`)
			if prompt := p.wants("session/prompt"); ended {
				p.replies(prompt, `{"stopReason":"end_turn"}`)
				s.wait(asked)
			}
			_ = stop()
		})
		serve(t, edit, func(s *served) {
			p, stop := s.start(can)
			asked := s.open(core.Request{Content: "x", Thread: "t"})
			now := strings.NewReplacer(`"currentValue":"a"`, `"currentValue":"b"`, `"currentModeId":"auto"`, `"currentModeId":"default"`, `"currentValue":"auto"`, `"currentValue":"default"`)
			p.replies(p.wants("session/resume"), now.Replace(`{`+offered+`}`)) // the mode is of the agent itself
			m := p.wants("session/set_config_option")
			if got, want := string(m.Params.Raw()), `{"sessionId":"s1","configId":"model","value":"a"}`; got != want {
				s.Errorf("%s: the agent got %s, want %s", name, got, want)
			}
			p.replies(m, `{}`)
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.wait(asked)
			_ = stop()
		})
		serve(t, edit, func(s *served) { // what was undone is not undone again
			p, stop := s.start(can)
			asked := s.open(core.Request{Content: "x", Thread: "t"})
			p.replies(p.wants("session/resume"), strings.Replace(`{`+offered+`}`, `"currentValue":"a"`, `"currentValue":"b"`, 1))
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.wait(asked)
			_ = stop()
		})
	}
}

func TestATaskSetsNothingThatCouldNotBeUndoneAfterIt(t *testing.T) {
	serve(t, set(core.Options{"mode": "default"}), func(s *served) {
		p, stop := s.start(`{}`)
		ask := func(thread core.ThreadID, options core.Options) *task.Task {
			return s.open(core.Request{Content: "x", Thread: thread, Options: options})
		}
		sets := func(mode string) {
			s.Helper()
			if m := p.wants("session/set_mode"); string(m.Params.Get("modeId").Raw()) != `"`+mode+`"` {
				s.Errorf("got %s, want the mode %s", m.Params.Raw(), mode)
			} else {
				p.replies(m, `{}`)
			}
		}
		done := func(asked *task.Task) {
			s.Helper()
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
		}
		asked := ask("t", core.Options{"mode": "yolo"}) // the agent says nothing, but the settings do
		p.begins("s1")
		sets("default")
		sets("yolo")
		done(asked)
		asked = ask("t", nil)
		sets("default")
		done(asked)

		asked = ask("t", core.Options{"speed": "1"})
		s.settle()
		if a := asked.Answer(); a.End != core.KindFailed || a.Fault.Code != core.CodeInvalid || !strings.HasPrefix(a.Fault.Message, "the agent does not say what speed is") {
			s.Errorf("got %s (%v), want it refused", a.End, a.Fault)
		}
		asked = ask("", core.Options{"speed": "1"}) // its session has no other task
		p.begins("s2")
		sets("default")
		p.replies(p.wants("session/set_config_option"), `{}`)
		done(asked)
		_ = stop()
	})
}

func TestASessionThatCannotBeSetAsBeforeIsReplaced(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"close":{}}}`)
		asked := s.open(core.Request{Content: "x", Thread: "t", Options: core.Options{"mode": "default"}})
		p.replies(p.wants("session/new"), `{"sessionId":"s1",`+modes+`}`)
		p.replies(p.wants("session/set_mode"), `{}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.wait(asked)
		asked = s.open(core.Request{Content: "x", Thread: "t"})
		p.fails(p.wants("session/set_mode"), -32602, "Invalid params")
		p.replies(p.wants("session/close"), `{}`)
		s.settle()
		if a := asked.Answer(); a.End != core.KindFailed || a.Fault.Code != core.CodeInvalid {
			s.Errorf("got %s (%v), want it failed: it would run in another mode", a.End, a.Fault)
		}
		asked = s.open(core.Request{Content: "x", Thread: "t"})
		p.replies(p.wants("session/new"), `{"sessionId":"s2",`+modes+`}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(asked, `session_lost {"reason":"the agent could not be set as before the task before"}`, "done {}")
		_ = stop()
	})
}

func TestATaskIsRefusedForAnOptionThatTheAgentDoesNotHave(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		fails := func(options core.Options, want string) {
			s.Helper()
			asked := s.open(core.Request{Content: "x", Thread: "t", Options: options})
			if !strings.HasPrefix(want, "the agent has") {
				p.fails(p.wants("session/set_config_option"), -32602, "Invalid params")
			} else if options["speed"] != "" {
				p.replies(p.wants("session/new"), `{"sessionId":"s1",`+offered+`}`)
			}
			s.settle()
			if a := asked.Answer(); a.End != core.KindFailed || a.Fault.Code != core.CodeInvalid || a.Fault.Message != want {
				s.Errorf("%v: got %s (%v), want it failed: %s", options, a.End, a.Fault, want)
			}
		}
		fails(core.Options{"speed": "1"}, `the agent has no option "speed": it has mode, model, fast`)
		fails(core.Options{"model": "own"}, "the agent does not take the option model=own: Invalid params; it offers a, b")
		_ = stop()
	})
}

func TestWhatSessionsCanBeSetToIsAnnouncedAsANewOneIs(t *testing.T) {
	announced := make(chan map[string]json.RawMessage, 4)
	log := &coretest.MemoryLog{}
	edit := func(o *client.Options) {
		o.Sessions = log
		o.Set = core.Options{"mode": "default"}
		o.Announce = func(all map[string]json.RawMessage) { announced <- all }
	}
	serve(t, edit, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.open(core.Request{Content: "x", Options: core.Options{"fast": "true"}})
		p.replies(p.wants("session/new"), `{"sessionId":"s1",`+modes+`,"configOptions":[`+boolean+`],"models":{"currentModelId":"x","availableModels":[{"modelId":"x"}]}}`)
		p.replies(p.wants("session/set_mode"), `{}`)
		got := <-announced
		want := map[string]string{
			"modes":         strings.Replace(modes, `"auto"`, `"default"`, 1)[len(`"modes":`):],
			"configOptions": `[{"id":"fast","name":"Fast","type":"boolean","currentValue":false}]`,
			"models":        `{"currentModelId":"x","availableModels":[{"modelId":"x"}]}`,
		}
		for name, text := range want {
			if string(got[name]) != text {
				s.Errorf("%s: got %s, want %s", name, got[name], text)
			}
		}
		p.replies(p.wants("session/set_config_option"), `{}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.wait(asked)

		asked = s.ask("more than a card has room for")
		p.replies(p.wants("session/new"), `{"sessionId":"s2","configOptions":[{"id":"x","name":"`+strings.Repeat("x", 33<<10)+`","type":"boolean","currentValue":true}],`+modes+`}`)
		p.replies(p.wants("session/set_mode"), `{}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.wait(asked)
		if len(announced) > 0 || s.counted("editor.options_too_many") != 1 {
			s.Errorf("got %d announced and %d counted, want none and 1", len(announced), s.counted("editor.options_too_many"))
		}
		_ = stop()
	})
	serve(t, edit, func(s *served) { // after a restart of the hub it is known before the first session
		_, stop := s.start(`{}`)
		if got := string((<-announced)["modes"]); !strings.Contains(got, `"currentModeId":"default"`) {
			s.Errorf("got the modes %s, want those of the last session", got)
		}
		_ = stop()
	})
}
