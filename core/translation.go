package core

import "fmt"

// Handling says what becomes of a kind in a dialect. The zero value is unset,
// which a test refuses.
type Handling uint8

// The ways in which a dialect can handle a kind.
const (
	_           Handling = iota
	Native               // the dialect has it
	Folded               // it is told through something else of the dialect
	Synthesised          // the dialect lacks it; the hub makes it from something else
	Refused              // it cannot be told; whoever sent it learns why
	Internal             // it is between the hub and itself; nothing is lost by not telling it
)

var handlings = names{"", "native", "folded", "synthesised", "refused", "internal"}

// String returns the word that the translation table uses.
func (h Handling) String() string { return handlings.name(uint8(h)) }

// Disposition is what becomes of one kind in one direction of a dialect.
type Disposition struct {
	How Handling
	// With is the frame that carries a native kind, what a folded one is folded
	// into, what a synthesised one is made from, or why it is refused.
	With string
}

// Table is one direction of a dialect: a disposition for every kind.
type Table map[Kind]Disposition

// CommandTable says for every act what gives the command in a dialect; "" where the
// dialect has nothing for it.
type CommandTable map[Act]string

// Translation is what a dialect declares of itself: what becomes of every kind
// between it and the hub, and what gives each command. A direction in which a dialect
// takes no part is nil.
type Translation struct {
	Dialect string
	// FromAgent: what an agent of the dialect says. ToAgent: what is said to it.
	FromAgent, ToAgent Table
	// FromRequester: what one who asks in the dialect says. ToRequester: what it
	// is told.
	FromRequester, ToRequester Table
	Commands                   CommandTable
}

// Check returns an error that names the first kind or act of which nothing is said.
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
