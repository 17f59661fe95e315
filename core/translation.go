package core

import "fmt"

// Handling says how a dialect handles a kind. The zero value is unset, which a test refuses.
type Handling uint8

// The ways in which a dialect can handle a kind.
const (
	_           Handling = iota
	Native               // the dialect has it
	Folded               // it becomes part of something else of the dialect
	Synthesised          // the dialect lacks it; the hub makes it from something else
	Refused              // it cannot be expressed; its sender learns why
	Internal             // it is internal to the hub; nothing is lost
)

var handlings = names{"", "native", "folded", "synthesised", "refused", "internal"}

// String returns the name in the translation table.
func (h Handling) String() string { return handlings.name(uint8(h)) }

// Disposition is how one direction of a dialect handles one kind.
type Disposition struct {
	How Handling
	// With is the frame of a native kind, what a folded one is folded into, what a
	// synthesised one is made from, or why it is refused.
	With string
}

// Table is one direction of a dialect: a disposition for every kind.
type Table map[Kind]Disposition

// CommandTable has what gives the command of each act in a dialect; "" if nothing does.
type CommandTable map[Act]string

// Translation is the declaration of a dialect: how it handles every kind, and what gives
// each command. A direction that the dialect does not have is nil.
type Translation struct {
	Dialect string
	// FromAgent and ToAgent are from and to an agent of the dialect.
	FromAgent, ToAgent Table
	// FromRequester and ToRequester are from and to a requester of the dialect.
	FromRequester, ToRequester Table
	Commands                   CommandTable
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
				return fmt.Errorf("dialect %s says nothing of %s in %s: declare what becomes of it", t.Dialect, k, direction.name)
			}
		}
	}
	for _, a := range Acts() {
		if _, ok := t.Commands[a]; !ok {
			return fmt.Errorf("dialect %s says nothing of %s in Commands: declare what gives it, or that nothing does", t.Dialect, a)
		}
	}
	return nil
}
