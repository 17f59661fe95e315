package wire

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The names of what a session offers to be chosen that has a method of its own beside the options.
const (
	OptionMode  = "mode"
	OptionModel = "model"
)

// Offer is what a session can be set to, in the result of session/new, session/load and
// session/resume. Models is in no schema any more.
type Offer struct {
	Modes         *Modes          `json:"modes"`
	ConfigOptions []ConfigOption  `json:"configOptions"`
	Models        json.RawMessage `json:"models"`
}

// MethodSetModel is in no schema any more, and the only way to the model of Gemini CLI.
const MethodSetModel = "session/set_model"

// IDs returns the modes that can be set.
func (m Modes) IDs() (all []string) {
	for _, mode := range m.AvailableModes {
		all = append(all, mode.ID)
	}
	return all
}

// Values returns the values that can be set: those of all groups, where the agent has groups.
func (o ConfigOption) Values() (all []string) {
	if o.Type == OptionBoolean {
		return []string{"true", "false"}
	}
	for one := range strictjson.ParseValid(o.Options).Items() {
		if value, is := one.Get("value").Text(); is {
			all = append(all, value)
		}
		for grouped := range one.Get("options").Items() {
			if value, is := grouped.Get("value").Text(); is {
				all = append(all, value)
			}
		}
	}
	return all
}

// ValueOf returns a text as a value of the option. One that is on or off may be a boolean or a choice
// of two, depending on what the client has declared.
func (o ConfigOption) ValueOf(text string) json.RawMessage {
	on, off := text == "true" || text == "on", text == "false" || text == "off"
	values := o.Values()
	switch {
	case o.Type == OptionBoolean && on:
		return json.RawMessage("true")
	case o.Type == OptionBoolean && off:
		return json.RawMessage("false")
	case on && !slices.Contains(values, text) && slices.Contains(values, "on"):
		text = "on"
	case off && !slices.Contains(values, text) && slices.Contains(values, "off"):
		text = "off"
	}
	return strictjson.Encode(text)
}

// SetModel is the params of session/set_model.
type SetModel struct {
	SessionID string `json:"sessionId"`
	ModelID   string `json:"modelId"`
}
