package core_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func everything() core.Table {
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

func TestATranslationThatSaysSomethingOfEveryKindIsComplete(t *testing.T) {
	for name, tr := range map[string]core.Translation{
		"all directions":         {Dialect: "x", FromAgent: everything(), ToAgent: everything(), FromRequester: everything(), ToRequester: everything()},
		"one direction":          {Dialect: "x", ToRequester: everything()},
		"no part in any of them": {Dialect: "x"},
	} {
		tr.Commands = everyCommand()
		if err := tr.Check(); err != nil {
			t.Errorf("%s: got %v, want no error", name, err)
		}
	}
}

func TestATranslationThatIsSilentOnAKindIsRefusedWithItsName(t *testing.T) {
	for _, k := range core.Kinds() {
		for name, leaves := range map[string]func(core.Table){
			"missing":      func(all core.Table) { delete(all, k) },
			"unset":        func(all core.Table) { all[k] = core.Disposition{With: "frame"} },
			"without what": func(all core.Table) { all[k] = core.Disposition{How: core.Refused} },
		} {
			table := everything()
			leaves(table)
			for direction, tr := range map[string]core.Translation{
				"FromAgent": {Dialect: "x", FromAgent: table}, "ToAgent": {Dialect: "x", ToAgent: table},
				"FromRequester": {Dialect: "x", FromRequester: table}, "ToRequester": {Dialect: "x", ToRequester: table},
			} {
				err := tr.Check()
				if err == nil || !strings.Contains(err.Error(), "dialect x says nothing of "+k.String()+" in "+direction) {
					t.Errorf("%s %s in %s: got %v, want it named", k, name, direction, err)
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

func TestATranslationThatIsSilentOnACommandIsRefusedWithItsName(t *testing.T) {
	for _, a := range core.Acts() {
		commands := everyCommand()
		delete(commands, a)
		err := core.Translation{Dialect: "x", Commands: commands}.Check()
		if err == nil || !strings.Contains(err.Error(), "dialect x says nothing of "+a.String()+" in Commands") {
			t.Errorf("%s is missing: got %v, want it named", a, err)
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
