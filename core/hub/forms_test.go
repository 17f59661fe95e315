package hub_test

import (
	"reflect"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// How a door gives what others have said.
const (
	redacted  = "in the form for its principal: see FormFor"
	toItsOwn  = "to who asked, or who works on it, alone"
	byItsID   = "as it was said: one task, opened by its id"
	toDecide  = "as it was said: it is decided on"
	toProgram = "as it was said, to parts of the program alone"
)

// doors are the methods that hand out what is said in tasks.
var doors = map[string]string{
	"Hub.Task": byItsID, "Hub.Approvals": toDecide, "Hub.ApprovalsHere": toDecide, "Hub.Ended": toProgram,
	"Hub.FormFor": redacted, "Hub.Tasks": redacted, "Hub.Thread": redacted, "Hub.LatestTurns": redacted, "Hub.Turns": redacted, "Hub.ReadThread": redacted,
	"ThreadReader.Next": redacted, "Session.Feed": redacted, "Feed.Next": redacted, "Feed.More": redacted,
	"Session.Open": toItsOwn, "Session.Ask": toItsOwn,
	"Session.Next": redacted, "Session.NextOr": redacted, "Session.Consume": redacted, "Session.Drain": redacted, // but what is watched in the form that Hub.Task gave
}

// Whoever adds a method that hands out what is said in tasks says here how it does that.
func TestEveryDoorToWhatOthersSayIsKnown(t *testing.T) {
	says := map[reflect.Type]bool{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[task.Task](), reflect.TypeFor[task.Log](), reflect.TypeFor[task.Status](), reflect.TypeFor[task.PendingApproval](), reflect.TypeFor[core.Event](),
		reflect.TypeFor[core.Turn](), reflect.TypeFor[core.Request](), reflect.TypeFor[core.Answer](), reflect.TypeFor[hub.Feed](), reflect.TypeFor[hub.ThreadReader](),
	} {
		says[typ] = true
	}
	var tells func(typ reflect.Type, depth int) bool
	tells = func(typ reflect.Type, depth int) bool {
		if says[typ] || depth == 0 {
			return says[typ]
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			return tells(typ.Elem(), depth-1)
		case reflect.Struct:
			for i := range typ.NumField() {
				if f := typ.Field(i); f.IsExported() && tells(f.Type, depth-1) {
					return true
				}
			}
		case reflect.Func:
			for i := range typ.NumIn() {
				if tells(typ.In(i), depth-1) {
					return true
				}
			}
		}
		return false
	}
	found := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[*hub.Hub](), reflect.TypeFor[*hub.Session](), reflect.TypeFor[*hub.Feed](), reflect.TypeFor[*hub.ThreadReader]()} {
		for i := range of.NumMethod() {
			m := of.Method(i)
			name, gives := of.Elem().Name()+"."+m.Name, false
			for o := range m.Type.NumOut() {
				gives = gives || tells(m.Type.Out(o), 4)
			}
			for in := 1; in < m.Type.NumIn(); in++ { // a function that is called with it
				gives = gives || m.Type.In(in).Kind() == reflect.Func && tells(m.Type.In(in), 4)
			}
			if found[name] = gives; gives && doors[name] == "" {
				t.Errorf("%s hands out what is said in tasks: got no row, want one that says how", name)
			}
		}
	}
	for name := range doors {
		if !found[name] {
			t.Errorf("%s: got a row, but no method that hands out what is said in tasks", name)
		}
	}
}
