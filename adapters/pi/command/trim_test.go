package command

import (
	"fmt"
	"testing"
)

func TestACommandThatShedsKeepsWhatItNeedsApartFromItsFrame(t *testing.T) {
	many := ""
	for i := range 100 {
		many += fmt.Sprintf(`"%d":1,`, i)
	}
	frame := []byte(`{` + many + `"message":"hello","id":"1","sessionId":"s","\u0074ype":"\u0062ash","command":"ls"}`)
	c, err := Decode(frame, len(frame))
	if err != nil {
		t.Fatal(err)
	}
	x := &Execution{Command: c}
	x.keepFields("command", "cwd")
	clear(frame) // as the memory of the next one
	if x.Has("message") || x.Has("sessionId") || x.object.Len() != 3 {
		t.Errorf("got %s, want the id, the type and the command alone", x.object.Raw())
	}
	if got := x.object.Memory(); got > 300 {
		t.Errorf("got %d bytes of memory held, want as many as the fields that were named take", got)
	}
	if command, _ := x.Text("command"); command != "ls" {
		t.Errorf("got the command %q, want ls", command)
	}
	got := string(appendResponse(nil, x.Command, response{}))
	if want := `{"id":"1","type":"response","command":"\u0062ash","success":true}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if want := len(`"1"`) + len(`"\u0062ash"`) + len(`"ls"`); x.size != want {
		t.Errorf("got %d bytes that count, want %d", x.size, want)
	}
}
