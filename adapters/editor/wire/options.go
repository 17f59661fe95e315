package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Offer is what a session can be set to, in the result of session/new, session/load, session/resume and
// session/fork. Models is in no schema any more. A mode may stand in both lists: it is the same one.
type Offer struct {
	Modes         *Modes          `json:"modes,omitempty"`
	ConfigOptions []ConfigOption  `json:"configOptions,omitempty"`
	Models        json.RawMessage `json:"models,omitempty"`
}

// MethodSetModel is in no schema any more, and the only way to the model of Gemini CLI.
const MethodSetModel = "session/set_model"

// IsSilent reports whether the agent has not said what it offers.
func (o *Offer) IsSilent() bool {
	return o.Modes == nil && o.ConfigOptions == nil && len(o.Models) == 0
}

// Option returns the option of an id, nil if there is none.
func (o *Offer) Option(id string) *ConfigOption {
	if at := slices.IndexFunc(o.ConfigOptions, func(c ConfigOption) bool { return c.ID == id }); at >= 0 {
		return &o.ConfigOptions[at]
	}
	return nil
}

// Names returns the ids of what can be set.
func (o *Offer) Names() []string {
	var all []string
	for _, option := range o.ConfigOptions {
		all = append(all, option.ID)
	}
	if o.Modes != nil && !slices.Contains(all, core.OptionMode) {
		all = append(all, core.OptionMode)
	}
	if len(o.Models) > 0 && !slices.Contains(all, core.OptionModel) {
		all = append(all, core.OptionModel)
	}
	return all
}

// Current returns what something is set to, and whether the agent has said so.
func (o *Offer) Current(id string) (string, bool) {
	switch option := o.Option(id); {
	case option != nil:
		value := strictjson.ParseValid(option.CurrentValue)
		if text, is := value.Text(); is {
			return text, true
		}
		return string(value.Raw()), len(option.CurrentValue) > 0
	case id == core.OptionMode && o.Modes != nil:
		return o.Modes.CurrentModeID, o.Modes.CurrentModeID != ""
	case id == core.OptionModel:
		return strictjson.ParseValid(o.Models).Get("currentModelId").Text()
	}
	return "", false
}

// Values returns the values that something can be set to, as far as the agent names them.
func (o *Offer) Values(id string) (all []string) {
	switch option := o.Option(id); {
	case option != nil:
		return option.Values()
	case id == core.OptionMode && o.Modes != nil:
		for _, mode := range o.Modes.AvailableModes {
			all = append(all, mode.ID)
		}
	case id == core.OptionModel:
		for model := range strictjson.ParseValid(o.Models).Get("availableModels").Items() {
			if name, is := model.Get("modelId").Text(); is {
				all = append(all, name)
			}
		}
	}
	return all
}

// Set notes what something is set to.
func (o *Offer) Set(id, value string) {
	if option := o.Option(id); option != nil {
		option.CurrentValue = option.ValueOf(value)
	}
	switch {
	case id == core.OptionMode && o.Modes != nil:
		o.Modes.CurrentModeID = value
	case id == core.OptionModel && len(o.Models) > 0:
		o.Models = strictjson.ParseValid(o.Models).Set(strictjson.Field{Key: "currentModelId", Value: strictjson.Encode(value)})
	}
}

// Hear notes what an update says of it, and reports whether it says anything.
func (o *Offer) Hear(u *Update) bool {
	switch u.Kind {
	case UpdateCurrentModeUpdate:
		if mode, is := u.Whole.Get("currentModeId").Text(); is {
			o.Set(core.OptionMode, mode)
			return true
		}
	case UpdateConfigOptionUpdate:
		var now Offer
		if u.Whole.Decode(&now) == nil && now.ConfigOptions != nil {
			o.Replace(now.ConfigOptions)
			return true
		}
	}
	return false
}

// Replace replaces all options. A mode among them also sets that of the modes.
func (o *Offer) Replace(options []ConfigOption) {
	o.ConfigOptions = options
	if mode, is := o.Current(core.OptionMode); is && o.Modes != nil {
		o.Modes.CurrentModeID = mode
	}
}

// Shown returns what an editor is offered: also the modes and models that are no options, as such. One
// that has no booleans gets choices of two.
func (o *Offer) Shown(booleans bool) (all []ConfigOption) {
	for _, option := range o.ConfigOptions {
		if option.Type == OptionBoolean && !booleans {
			is := "off"
			if string(option.CurrentValue) == "true" {
				is = "on"
			}
			option.Type, option.CurrentValue = OptionSelect, strictjson.Encode(is)
			option.Options = json.RawMessage(`[{"value":"on","name":"On"},{"value":"off","name":"Off"}]`)
		}
		all = append(all, option)
	}
	for _, id := range []string{core.OptionMode, core.OptionModel} {
		if is, known := o.Current(id); known && o.Option(id) == nil {
			all = append(all, ConfigOption{
				ID: id, Name: strings.ToUpper(id[:1]) + id[1:], Category: id, Type: OptionSelect, CurrentValue: strictjson.Encode(is), Options: o.choices(id),
			})
		}
	}
	return all
}

// choices returns the modes or models as those of an option.
func (o *Offer) choices(id string) json.RawMessage {
	type choice struct {
		Value       string `json:"value"`
		Name        string `json:"name"`
		Description string `json:"description,omitempty"`
	}
	all := []choice{}
	if id == core.OptionMode {
		for _, mode := range o.Modes.AvailableModes {
			all = append(all, choice{mode.ID, cmp.Or(mode.Name, mode.ID), mode.Description})
		}
		return strictjson.Encode(all)
	}
	for model := range strictjson.ParseValid(o.Models).Get("availableModels").Items() {
		value, _ := model.Get("modelId").Text()
		name, _ := model.Get("name").Text()
		description, _ := model.Get("description").Text()
		all = append(all, choice{value, cmp.Or(name, value), description})
	}
	return strictjson.Encode(all)
}

// MaxOffer bounds what is kept of an offer, in bytes of JSON. A larger one counts as none.
const MaxOffer = 32 << 10

// Kept returns the offer without the memory of the messages that it comes from, and whether it is small
// enough; else nothing.
func (o *Offer) Kept() (Offer, bool) {
	text := strictjson.Encode(o)
	var kept Offer
	if len(text) > MaxOffer || strictjson.ParseValid(text).Decode(&kept) != nil {
		return Offer{}, false
	}
	return kept, true
}

// Clone returns a copy that shares nothing that changes.
func (o *Offer) Clone() Offer {
	c := Offer{ConfigOptions: slices.Clone(o.ConfigOptions), Models: o.Models}
	if o.Modes != nil {
		modes := *o.Modes
		c.Modes = &modes
	}
	return c
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

func (r *SetMode) check() error {
	if err := need("sessionId", r.SessionID); err != nil {
		return err
	}
	return need("modeId", r.ModeID)
}

func (r *SetConfigOption) check() error {
	if err := need("sessionId", r.SessionID); err != nil {
		return err
	}
	return need("configId", r.ConfigID)
}

// SetModel is the params of session/set_model.
type SetModel struct {
	SessionID string `json:"sessionId"`
	ModelID   string `json:"modelId"`
}
