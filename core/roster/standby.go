package roster

import (
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// AddStandby adds a member that only [Roster.Find] finds, by the id of the card or its
// alias, while no agent has that id. It is in no list and answers for no other address:
// [Roster.Add] makes it an agent. Several members may stand by under one id; the latest of
// them is found.
func (r *Roster) AddStandby(card core.Card, m Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := newEntry(card, m, time.Now())
	e.OnlyByID = true
	r.standby[card.ID] = append(r.standby[card.ID], e)
	r.aliases.add(card.ID)
}

// RemoveStandby undoes AddStandby. If the member is the agent of the id, it stays that.
func (r *Roster) RemoveStandby(id core.AgentID, m Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.standby[id], func(e Entry) bool { return e.Member == m })
	if r.standby[id] = left; len(left) == 0 {
		delete(r.standby, id)
		r.forget(id)
	}
}
