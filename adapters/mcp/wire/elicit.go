package wire

import "encoding/json"

// ElicitRequest asks a client to ask its user (2026-07-28, client/elicitation). It is a member of
// inputRequests; in legacy versions it is a request of the server.
type ElicitRequest struct {
	Method string       `json:"method"`
	Params ElicitParams `json:"params"`
}

// ElicitParams are the form that the user is shown. A Mode of "" is that of a form too.
type ElicitParams struct {
	Mode    string `json:"mode,omitempty"`
	Message string `json:"message"`
	// Schema is a FormSchema, or that of who asks.
	Schema json.RawMessage `json:"requestedSchema"`
}

// FormSchema is the schema of a form: a flat object.
type FormSchema struct {
	Type       string           `json:"type"`
	Properties map[string]Field `json:"properties"`
	Required   []string         `json:"required"`
}

// Field is a field of a form, as far as the hub's own forms need it.
type Field struct {
	Type        string   `json:"type"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Items       *Field   `json:"items,omitempty"`
}

// ModeForm is the mode of an elicitation that the hub asks for.
const ModeForm = "form"

// Capabilities are what a client says that it can do, as far as the hub uses it.
type Capabilities struct {
	Elicitation *struct {
		Form json.RawMessage `json:"form"`
		URL  json.RawMessage `json:"url"`
	} `json:"elicitation"`
	Extensions map[string]json.RawMessage `json:"extensions"`
}

// Elicits reports whether the client can show a form. A client that names no mode can.
func (c Capabilities) Elicits() bool {
	return c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// HasTasks reports whether the client has the tasks extension.
func (c Capabilities) HasTasks() bool {
	_, ok := c.Extensions[ExtensionTasks]
	return ok
}
