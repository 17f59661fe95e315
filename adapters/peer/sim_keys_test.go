package peer_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// simKey is a request with a key, which its person sends again at this hub or that.
type simKey struct {
	number int
	by     *person
	to     core.Address
	takes  time.Duration // until its deadline
	tasks  []*simTask    // that were opened for it
}

// sent is what came of a request with a key that was sent: the task that it has opened, or that was
// known.
type sent struct {
	key      *simKey
	at       *life
	id       core.TaskID
	deadline time.Time
	opened   bool
	err      error
}

// simKeys are keys to which a task is written a while after it was opened: in that time its hub may die.
type simKeys struct{ remote.KeyStore }

func (k simKeys) Write(ctx context.Context, name, text string, revision uint64) (uint64, error) {
	if strings.Contains(text, `"task"`) {
		time.Sleep(300 * time.Millisecond)
	}
	return k.KeyStore.Write(ctx, name, text, revision)
}

// send sends a request with a key, or one that was sent before again.
func (s *sim) send(p *person) {
	var mine []*simKey
	for _, k := range s.keyed {
		if k.by == p {
			mine = append(mine, k)
		}
	}
	var k *simKey
	if len(mine) > 0 && s.chance(700) {
		k = mine[max(0, len(mine)-1-s.rnd.IntN(3))]
	} else {
		k = &simKey{number: len(s.keyed) + 1, by: p, to: s.to(), takes: s.within(time.Second, 6*time.Second)}
		s.keyed = append(s.keyed, k)
	}
	s.count.Sent++
	sess, at := p.sess, p.at
	s.note(p.name, " sends ", k.name(), " at ", at.at.name)
	s.sending.Add(1)
	s.running.Go(func() {
		defer s.sending.Add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		tell := func(o sent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent = append(s.sent, o)
		}
		r := hub.Repeatable{Owner: p.principal.ID, Name: k.name(), Content: sha256.Sum256([]byte(k.to.String()))}
		id, known, err := at.keys.Once(ctx, r, func(key string) (core.TaskID, error) {
			deadline := time.Now().Add(k.takes)
			t, err := sess.Open(core.Request{To: k.to, Content: "why?", Deadline: deadline}, hub.OpenOptions{Keep: true, Unwatched: true, Key: key})
			if t == nil || t.ID() == "" {
				return "", err
			}
			tell(sent{key: k, at: at, id: t.ID(), deadline: deadline, opened: true, err: err})
			return t.ID(), err
		})
		if known || err != nil {
			tell(sent{key: k, at: at, id: id, err: err})
		}
	})
}

func (k *simKey) name() string { return fmt.Sprintf("K%d", k.number) }

// takeSent notes what came of the requests that were sent.
func (s *sim) takeSent() {
	s.mu.Lock()
	all := s.sent
	s.sent = nil
	s.mu.Unlock()
	slices.SortStableFunc(all, func(a, b sent) int {
		return cmp.Or(cmp.Compare(a.key.number, b.key.number), strings.Compare(a.at.at.name, b.at.at.name))
	})
	for _, o := range all {
		switch {
		case o.opened:
			t := &simTask{name: fmt.Sprintf("T%d", len(s.tasks)+1), id: o.id, number: len(s.tasks), by: o.key.by.principal, at: o.at, deadline: o.deadline}
			s.tasks, s.byID[t.id] = append(s.tasks, t), t
			s.note(o.key.name(), " opens ", t.name, " at ", o.at.at.name, " ", codeOf(o.err))
			if o.err == nil { // else it was refused, and that is recorded
				o.key.tasks = append(o.key.tasks, t)
				o.key.by.view(t)
			}
		case o.err == nil:
			s.count.Known++
			s.note(o.key.name(), " is known at ", o.at.at.name)
			if !slices.ContainsFunc(o.key.tasks, func(t *simTask) bool { return t.id == o.id }) {
				s.breaks("keys: %s is known at %s as a task that was not opened for it", o.key.name(), o.at.at.name)
			}
		default:
			s.note(o.key.name(), " is refused at ", o.at.at.name, ": ", codeOf(o.err))
		}
	}
}

// checkKeys checks that no request with a key has two tasks that were stored with it: a task that is refused has none.
func (s *sim) checkKeys() {
	for _, k := range s.keyed {
		var names []string
		for _, t := range k.tasks {
			all := s.stored(t)
			if len(all) == 0 {
				continue
			}
			if b, ok := all[0].Body.(core.Opened); ok && b.Key != "" {
				names = append(names, t.name)
			}
		}
		if len(names) > 1 {
			s.breaks("keys: %s has the tasks %s", k.name(), strings.Join(names, " and "))
		}
	}
}
