package pi

import (
	"encoding/json"
	"time"
)

// doubtful is what a message that was queued before a restart has come to: it may or may
// not have been said, and saying it again is up to the client.
const doubtful = "Message was queued before previous shutdown and may not have been said: look at the conversation, and send it under another id where it is missing"

// outdated reports whether what came of a command does not hold any more: it speaks of what
// an earlier process had in memory, or subscribed to a session that is parked now. Such a
// command is done again and not replayed.
func (s *Server) outdated(k *known) bool {
	switch {
	case k.x != nil || k.response.err != "":
		return false
	case k.run != 0:
		of := table[k.kind]
		return of != nil && of.again
	}
	return k.kind == "switch_session" && s.parked[sessionKey{k.scope, k.session}] != nil
}

// doAgain lets x do again what it came to before. It was let through then: what it depends
// on and the version that it wants are not asked for again.
func (x *execution) doAgain(before response) {
	x.before, x.depends = &before, nil
	if x.session != "" || !x.makes() {
		return
	}
	var made struct { // the session got its id from the server
		SessionID string `json:"sessionId"`
	}
	if x.again(&made) {
		x.session = made.SessionID
	}
}

// again reads what came of x before into data, where x is done again.
func (x *execution) again(data any) bool {
	return x.before != nil && json.Unmarshal(x.before.data, data) == nil
}

// opened is where the conversation of a session is since a command succeeded.
type opened struct {
	ID   string `json:"id"`
	File string `json:"file"`
}

// opens returns what the journal is to know of the session of a command that succeeded, or
// nil.
func (x *execution) opens() *opened {
	ss := x.on
	if !x.spec.opens || ss == nil || ss.deleted || ss.file.Path() == "" {
		return nil
	}
	return &opened{ss.key.id, ss.file.Path()}
}

// parkAgain takes in from the outcome of an earlier command which session there was: it is
// parked since that process ended.
func (s *Server) parkAgain(r record) {
	if r.Error != "" {
		return
	}
	key := sessionKey{r.Scope, r.Session}
	if o := r.Opened; o != nil {
		key.id = o.ID
		s.keepParked(key, &parked{path: o.File, made: time.UnixMilli(r.At)})
	}
	if r.Kind == "delete_session" {
		delete(s.parked, key)
	}
	if p := s.parked[key]; p != nil && r.SessionVersion != nil {
		p.version = *r.SessionVersion
	}
}
