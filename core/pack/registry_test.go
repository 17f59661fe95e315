package pack_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestToolsAreListedByNameForTheirCallers(t *testing.T) {
	r := newRegistry(nil)
	err := r.Provide(&peer{}, "p", []tool.Definition{{Name: "z", Description: "last"}, {Name: "a", Requires: []string{"admin"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := r.names(); got != "z" {
		t.Errorf("without capabilities: got %q, want z", got)
	}
	if got := r.names("admin"); got != "a z" {
		t.Errorf("as an admin: got %q, want a and z", got)
	}
	z := r.Tools(nil, everyPack)[0]
	want := tool.Definition{Name: "z", Description: "last", Pack: "p", InputSchema: []byte(`{"type":"object"}`), Timeout: 1e9}
	if diff := cmp.Diff(want, z); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestARefusedPackChangesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		id    string
		tools []tool.Definition
		want  core.Code
	}{
		"an id with a blank":              {" p", nil, core.CodeInvalid},
		"no id":                           {"", nil, core.CodeInvalid},
		"a long id":                       {strings.Repeat("p", core.MaxIDBytes+1), nil, core.CodeInvalid},
		"an id in use":                    {"present", nil, core.CodeConflict},
		"too many tools":                  {"p", definitions("1", "2", "3", "4"), core.CodeTooLarge},
		"a reserved name":                 {"p", definitions("reserved"), core.CodeConflict},
		"a name of another":               {"p", definitions("taken"), core.CodeConflict},
		"a name twice":                    {"p", definitions("x", "x"), core.CodeInvalid},
		"a name with a blank":             {"p", definitions("x y"), core.CodeInvalid},
		"a long description":              {"p", []tool.Definition{{Name: "x", Description: strings.Repeat("x", 64<<10+1)}}, core.CodeTooLarge},
		"a description that is not UTF-8": {"p", []tool.Definition{{Name: "x", Description: "\xff"}}, core.CodeInvalid},
		"a schema of strings":             {"p", []tool.Definition{{Name: "x", InputSchema: []byte(`{"type":"string"}`)}}, core.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRegistry(nil)
			r.provide(t, "present", "taken")
			watcher := &peer{}
			r.Watch(watcher)
			wantFault(t, name, r.Provide(&peer{}, c.id, c.tools), c.want)
			watcher.wants(t, "the watcher")
			if got := r.names(); got != "taken" {
				t.Errorf("got the tools %q, want those from before", got)
			}
		})
	}
}

func TestTheNumberOfPacksIsBounded(t *testing.T) {
	r := newRegistry(nil)
	first := r.provide(t, "a")
	r.provide(t, "b")
	wantFault(t, "a third pack", r.Provide(&peer{}, "c", nil), core.CodeOverloaded)
	if err := r.Provide(first, "a", definitions("x")); err != nil {
		t.Errorf("a connected pack: got %v, want no error", err)
	}
	wantFault(t, "another pack of the same peer", r.Provide(first, "c", nil), core.CodeConflict)
	if id := r.Leave(first, core.NewFault(core.CodeUnreachable, "gone")); id != "a" {
		t.Errorf("Leave: got %q, want a", id)
	}
	r.provide(t, "c")
}

func TestWatchersLearnOfEveryChangeUntilTheyLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, watcher := newRegistry(nil), &peer{}
		r.Watch(watcher)
		p := r.provide(t, "p", "x", "y")
		rest()
		if err := r.Provide(p, "p", definitions("y", "z")); err != nil {
			t.Fatal(err)
		}
		if got := r.names(); got != "y z" {
			t.Errorf("got %q, want y and z", got)
		}
		rest()
		gone := core.NewFault(core.CodeUnreachable, "gone")
		r.Leave(p, gone)
		watcher.wants(t, "the watcher", "tools changed", "tools changed", "tools changed")
		if id := r.Leave(watcher, gone); id != "" {
			t.Errorf("Leave: got %q, want no pack", id)
		}
		rest()
		r.provide(t, "q", "x")
		rest()
		watcher.wants(t, "a watcher that has left")
	})
}

// rest lets a row of changes end.
func rest() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func TestWatchersLearnOnlyOfWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		r, watcher := newRegistry(func(o *pack.Options) {
			o.Tell = func(hub string, w pack.Word) {
				if w.Offered != nil {
					told = append(told, w.Offered.Pack)
				}
			}
		}), &peer{}
		r.HubUp("other")
		r.Watch(watcher)
		p := r.provide(t, "p", "x", "y")
		for _, names := range [][]string{{"x", "y"}, {"y", "x"}} {
			rest()
			if err := r.Provide(p, "p", definitions(names...)); err != nil {
				t.Fatal(err)
			}
		}
		rest()
		r.Leave(r.provide(t, "empty"), core.NewFault(core.CodeUnreachable, "gone"))
		rest()
		watcher.wants(t, "the watcher", "tools changed")
		if want := []string{"p", "empty"}; !slices.Equal(told, want) {
			t.Errorf("the other hub was told of %q, want %q", told, want)
		}
		more := definitions("x", "y")
		more[1].Description = "of another kind"
		if err := r.Provide(p, "p", more); err != nil {
			t.Fatal(err)
		}
		watcher.wants(t, "the watcher", "tools changed")
	})
}

func TestWatchersAreToldAFewTimesASecondHoweverOftenAPackChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, watcher := newRegistry(nil), &peer{}
		r.Watch(watcher)
		p := r.provide(t, "p", "x")
		const changes, spell = 1000, 10 * time.Second
		for i := range changes {
			if err := r.Provide(p, "p", definitions([]string{"x", "y"}[i%2])); err != nil {
				t.Fatal(err)
			}
			time.Sleep(spell / changes)
		}
		rest()
		if got := len(watcher.calls); got < 2 || got > 20 {
			t.Errorf("got told %d times of %d changes in %v, want a few times a second, and the last one", got, changes, spell)
		}
	})
}

func TestAStoppedRegistryRefusesCallsAndPacks(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	r.provide(t, "p", "x")
	r.call(caller, "1", "x", `{}`)
	stopped := core.NewFault(core.CodeUnreachable, "the hub stopped")
	r.Stop(stopped)
	r.call(caller, "2", "x", `{}`)
	caller.wants(t, "the caller", `1 of "p": fault unreachable`, `2 of "p": fault unreachable`)
	if err := r.Provide(&peer{}, "q", nil); err != stopped {
		t.Errorf("a pack: got %v, want %v", err, stopped)
	}
}

func TestASchemaChecksEveryInput(t *testing.T) {
	compile := func(schema []byte) (func([]byte) error, error) {
		if strings.Contains(string(schema), "unusable") {
			return nil, core.NewFault(core.CodeInvalid, "unusable")
		}
		return func(input []byte) error {
			if string(input) != `{"good":1}` {
				return core.NewFault(core.CodeInvalid, "not good")
			}
			return nil
		}, nil
	}
	r, caller := newRegistry(func(o *pack.Options) { o.Schema = compile }), &peer{}
	wantFault(t, "an unusable schema", r.Provide(&peer{}, "p", []tool.Definition{{Name: "x", InputSchema: []byte(`{"unusable":1}`)}}), core.CodeInvalid)
	p := r.provide(t, "p", "x")
	r.call(caller, "1", "x", ``)
	r.call(caller, "2", "x", `{"good":1}`)
	caller.wants(t, "the caller", `1 of "p": fault invalid`)
	p.wants(t, "the pack", `execute x {"good":1}`)
}

func TestAToolThatChecksItsInputIsOfferedWithASchemaThatCannotBeUsed(t *testing.T) {
	unusable := func(schema []byte) (func([]byte) error, error) {
		if string(schema) != `{"type":"object"}` {
			return nil, core.NewFault(core.CodeInvalid, "unusable")
		}
		return func([]byte) error { return nil }, nil
	}
	var words []pack.Word
	r, caller := newRegistry(func(o *pack.Options) {
		o.Schema, o.Tell = unusable, func(_ string, w pack.Word) { words = append(words, w) }
	}), &peer{}
	r.HubUp("other")
	p := &peer{}
	if err := r.Provide(p, "p", []tool.Definition{{Name: "x", InputSchema: []byte(`{"required":null}`), Checks: true}}); err != nil {
		t.Fatalf("got %v, want it offered", err)
	}
	r.call(caller, "1", "x", `{"any":1}`)
	p.wants(t, "the pack", `execute x {"any":1}`)

	text, err := json.Marshal(words[len(words)-1])
	if err != nil {
		t.Fatal(err)
	}
	var told pack.Word
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	other := newRegistry(func(o *pack.Options) {
		o.Schema, o.Elsewhere = unusable, func(pack.Provider) pack.Peer { return &peer{} }
	})
	other.Hear("this", told)
	if got := other.names(); got != "x" {
		t.Errorf("another hub: got the tools %q, want x", got)
	}
}

func TestACallOfAToolOfAnAbsentPackSaysWhyItIsAbsent(t *testing.T) {
	r, caller := newRegistry(nil), &peer{}
	dev := &peer{}
	why := core.NewFault(core.CodeUnreachable, "pack dev is starting")
	r.Absent(dev, "dev", why)
	r.call(caller, "1", "dev.x", `{}`)
	r.call(caller, "2", "dev", `{}`)
	r.call(caller, "3", "device.x", `{}`)
	caller.wants(t, "the caller", `1 of "dev": fault unreachable`, `2 of "": fault unsupported`, `3 of "": fault unsupported`)
	if id, by := r.PackOf("dev.x"); id != "dev" || by != pack.Peer(dev) {
		t.Errorf("got the pack %q of %v, want dev", id, by)
	}
	if err := r.Provide(dev, "dev", definitions("dev.y")); err != nil {
		t.Fatal(err)
	}
	r.call(caller, "4", "dev.x", `{}`)
	caller.wants(t, "the caller", `4 of "": fault unsupported`)
	r.Leave(dev, core.NewFault(core.CodeUnreachable, "gone"))

	other := &peer{}
	r.Absent(other, "dev", why)
	r.Leave(other, core.NewFault(core.CodeUnreachable, "gone"))
	r.Absent(other, "prod", why)
	r.provide(t, "prod", "prod.y") // by another peer, which is there
	r.call(caller, "5", "dev.x", `{}`)
	r.call(caller, "6", "prod.x", `{}`)
	caller.wants(t, "the caller", `5 of "": fault unsupported`, `6 of "": fault unsupported`)
}
