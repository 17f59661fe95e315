package core

import "fmt"

// Handling is how a dialect handles a kind. [Translation.Check] refuses the zero value.
type Handling uint8

// The ways in which a dialect can handle a kind.
const (
	_           Handling = iota
	Native               // the dialect has a frame for it
	Folded               // it becomes part of another frame
	Synthesised          // the dialect lacks it; the hub derives it from another frame
	Refused              // the dialect cannot express it; its sender gets an error
	Internal             // it stays in the hub, or comes from the other side; nothing is lost
)

var handlings = names{"", "native", "folded", "synthesised", "refused", "internal"}

// String returns the name in the translation table.
func (h Handling) String() string { return handlings.name(uint8(h)) }

// Disposition is how one direction of a dialect handles one kind.
type Disposition struct {
	How Handling
	// With names the frame of a native kind, the frame or member that a folded one becomes
	// part of, or the source of a synthesised one; or it gives the reason for a refused or
	// an internal one.
	With string
}

// Table is one direction of a dialect: a disposition for every kind.
type Table map[Kind]Disposition

// CommandTable maps each act to what issues its command in a dialect, "" if nothing does.
type CommandTable map[Act]string

// Translation is the declaration of a dialect: how it handles every kind, and what issues
// each command. The table of a direction that the dialect does not have is nil.
type Translation struct {
	Dialect string
	// FromAgent and ToAgent are for what an agent of the dialect sends and gets.
	FromAgent, ToAgent Table
	// FromRequester and ToRequester are for what a requester of the dialect sends and gets.
	FromRequester, ToRequester Table
	Commands                   CommandTable
}

// Translations are the declarations of all dialects, by their names.
type Translations map[string]Translation

// Lost returns how an event of a kind is lost on its way between a requester and an agent of the
// dialects: [Folded] or [Refused], and zero if it is not. Every task has opened and assigned: how they
// are translated says nothing.
func (all Translations) Lost(requester, agent string, k Kind) Handling {
	var how Handling
	switch {
	case k == KindOpened || k == KindAssigned:
	case k.ForAgent():
		how = all[agent].ToAgent[k].How
	default:
		how = all[requester].ToRequester[k].How
	}
	if how == Folded || how == Refused {
		return how
	}
	return 0
}

// Check returns an error that names the first kind or act that is not declared.
func (t Translation) Check() error {
	for _, direction := range []struct {
		name  string
		table Table
	}{{"FromAgent", t.FromAgent}, {"ToAgent", t.ToAgent}, {"FromRequester", t.FromRequester}, {"ToRequester", t.ToRequester}} {
		if direction.table == nil {
			continue
		}
		for _, k := range Kinds() {
			if d := direction.table[k]; d.How == 0 || d.With == "" {
				return fmt.Errorf("dialect %s does not declare %s in %s: add how it is translated", t.Dialect, k, direction.name)
			}
		}
	}
	for _, a := range Acts() {
		if _, ok := t.Commands[a]; !ok {
			return fmt.Errorf("dialect %s does not declare %s in Commands: add what issues it, or \"\" if nothing does", t.Dialect, a)
		}
	}
	return nil
}
