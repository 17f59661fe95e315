package command_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

func TestACommandKeepsTheFieldsItNeedsApartFromItsFrame(t *testing.T) {
	many := ""
	for i := range 100 {
		many += fmt.Sprintf(`"%d":1,`, i)
	}
	frame := []byte(`{` + many + `"message":"hello","id":"1","sessionId":"s","\u0074ype":"\u0062ash","command":"ls"}`)
	h := &host{}
	e, c := newEngine(t, h, command.Options{})
	h.perform = func(x *command.Execution) command.Outcome {
		x.KeepOnly("command", "cwd")
		return command.Outcome{Pending: true}
	}
	x := &command.Execution{}
	e.Submit(c, decode(t, frame), x)
	clear(frame) // as the next frame may reuse its memory
	if x.Has("message") || x.Has("sessionId") {
		t.Error("got the message or the session kept, want only the id, the type and the command")
	}
	if text, _ := x.Text("command"); text != "ls" {
		t.Errorf("got the command %q, want ls", text)
	}
	e.Lock()
	defer e.Unlock()
	if got, want := e.Counts().InFlightBytes, len(`"1"`)+len(`"\u0062ash"`)+len(`"ls"`); got != want {
		t.Errorf("got %d bytes that count, want %d", got, want)
	}
	x.Finish(command.Outcome{})
	got := string(h.frames[len(h.frames)-1])
	if want := `{"id":"1","type":"response","command":"\u0062ash","success":true}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
