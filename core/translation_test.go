package core_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func everyKind() core.Table {
	all := core.Table{}
	for _, k := range core.Kinds() {
		all[k] = core.Disposition{How: core.Native, With: "frame"}
	}
	return all
}

func everyCommand() core.CommandTable {
	all := core.CommandTable{}
	for _, a := range core.Acts() {
		all[a] = ""
	}
	return all
}

func TestATranslationThatDeclaresEveryKindIsComplete(t *testing.T) {
	for name, tr := range map[string]core.Translation{
		"all directions": {Dialect: "x", FromAgent: everyKind(), ToAgent: everyKind(), FromRequester: everyKind(), ToRequester: everyKind()},
		"one direction":  {Dialect: "x", ToRequester: everyKind()},
		"no direction":   {Dialect: "x"},
	} {
		tr.Commands = everyCommand()
		if err := tr.Check(); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
}

func TestAnUndeclaredKindIsReportedByName(t *testing.T) {
	for _, k := range core.Kinds() {
		for name, remove := range map[string]func(core.Table){
			"missing": func(all core.Table) { delete(all, k) },
			"unset":   func(all core.Table) { all[k] = core.Disposition{With: "frame"} },
			"no text": func(all core.Table) { all[k] = core.Disposition{How: core.Refused} },
		} {
			table := everyKind()
			remove(table)
			for direction, tr := range map[string]core.Translation{
				"FromAgent": {Dialect: "x", FromAgent: table}, "ToAgent": {Dialect: "x", ToAgent: table},
				"FromRequester": {Dialect: "x", FromRequester: table}, "ToRequester": {Dialect: "x", ToRequester: table},
			} {
				err := tr.Check()
				if err == nil || !strings.Contains(err.Error(), "dialect x does not declare "+k.String()+" in "+direction) {
					t.Errorf("%s %s in %s: got %v, want an error that names it", k, name, direction, err)
				}
			}
		}
	}
	empty := core.Translation{Dialect: "x", FromAgent: core.Table{}, ToAgent: core.Table{}}
	first := empty.Check().Error()
	for range 50 {
		if got := empty.Check().Error(); got != first {
			t.Fatalf("got %q and then %q, want the same", first, got)
		}
	}
}

func TestAnUndeclaredCommandIsReportedByName(t *testing.T) {
	for _, a := range core.Acts() {
		commands := everyCommand()
		delete(commands, a)
		err := core.Translation{Dialect: "x", Commands: commands}.Check()
		if err == nil || !strings.Contains(err.Error(), "dialect x does not declare "+a.String()+" in Commands") {
			t.Errorf("%s missing: got %v, want an error that names it", a, err)
		}
	}
}

func TestEveryHandlingHasItsName(t *testing.T) {
	for h, want := range map[core.Handling]string{
		0: "", core.Native: "native", core.Folded: "folded", core.Synthesised: "synthesised", core.Refused: "refused", core.Internal: "internal",
	} {
		if got := h.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
