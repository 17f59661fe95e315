package wire

import (
	"encoding/base64"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// The commands that the hub sends (docs/rpc.md of pi, "Commands").
const (
	CommandPrompt        = "prompt"
	CommandSteer         = "steer"
	CommandFollowUp      = "follow_up"
	CommandAbort         = "abort"
	CommandClearQueue    = "clear_queue"
	CommandState         = "get_state"
	CommandSwitchSession = "switch_session"
)

// DispositionHandled is the answer to a [CommandPrompt] that an extension consumed, from version
// 0.99 on: no run follows.
const DispositionHandled = "handled"

// command is the JSON of every command.
type command struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Message *string `json:"message,omitempty"`
	Images  []image `json:"images,omitempty"`
	Session string  `json:"sessionPath,omitempty"`
}

type image struct {
	Type     string `json:"type"`
	Data     string `json:"data"`
	MimeType string `json:"mimeType"`
}

// Say returns a prompt, steer or follow_up.
func Say(id, name, message string, images []core.File) []byte {
	c := command{ID: id, Type: name, Message: &message}
	for _, f := range images {
		c.Images = append(c.Images, image{Type: "image", Data: base64.StdEncoding.EncodeToString(f.Data), MimeType: f.MediaType})
	}
	return encode(c)
}

// Command returns a command without arguments.
func Command(id, name string) []byte { return encode(command{ID: id, Type: name}) }

// SwitchSession returns a switch_session to a session file.
func SwitchSession(id, path string) []byte {
	return encode(command{ID: id, Type: CommandSwitchSession, Session: path})
}

// Reply is the answer to a [Dialog] (docs/rpc.md of pi, "Extension UI Protocol"). One of its
// fields is set.
type Reply struct {
	Value     *string `json:"value,omitempty"`
	Confirmed *bool   `json:"confirmed,omitempty"`
	Cancelled bool    `json:"cancelled,omitempty"`
}

// Respond returns the answer to the dialog with an id.
func Respond(id string, r Reply) []byte {
	return encode(struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Reply
	}{"extension_ui_response", id, r})
}

// encode returns v as JSON. encoding/json escapes U+2028 and U+2029, so that no reader takes
// them for the end of a line.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}
