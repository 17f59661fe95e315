package core

import (
	"encoding/json"
	"fmt"
)

// callJSON is the JSON form of a call. It is stable: members are added, never renamed or
// removed.
//
//	{"id":"7","principal":{"id":"ana"},"act":"cancel","command":{"task":"0197-task"}}
type callJSON struct {
	ID        string          `json:"id,omitempty"`
	Principal Principal       `json:"principal"`
	Trace     Trace           `json:"trace,omitzero"`
	Act       string          `json:"act"`
	Command   json.RawMessage `json:"command"`
}

// MarshalJSON writes the JSON form.
func (c Call) MarshalJSON() ([]byte, error) {
	command, err := json.Marshal(c.Command)
	if err != nil {
		return nil, err
	}
	return json.Marshal(callJSON{c.ID, c.Principal, c.Trace, c.Command.Act().String(), command})
}

// UnmarshalJSON reads the JSON form. It returns an unknown_kind Fault for an unknown act,
// and an invalid one for a missing command.
func (c *Call) UnmarshalJSON(b []byte) error {
	var j callJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	for _, a := range Acts() {
		if a.String() != j.Act {
			continue
		}
		command, err := a.info().read(j.Command)
		if err != nil {
			return fmt.Errorf("command %s: %w", j.Act, err)
		}
		*c = Call{ID: j.ID, Principal: j.Principal, Trace: j.Trace, Command: command}
		return nil
	}
	return NewFault(CodeUnknownKind, "unknown act %q", j.Act)
}

func readCommand[C Command](b []byte) (Command, error) {
	c := new(C)
	err := decodeCommand(b, c)
	return *c, err
}

func readOpen(b []byte) (Command, error) {
	o := new(Open)
	err := decodeCommand(b, o)
	if err == nil && o.Request == nil {
		err = NewFault(CodeInvalid, "the request is missing")
	}
	return o, err
}

func decodeCommand(b []byte, c any) error {
	if len(b) == 0 || string(b) == "null" {
		return NewFault(CodeInvalid, "the command is missing")
	}
	return json.Unmarshal(b, c)
}
