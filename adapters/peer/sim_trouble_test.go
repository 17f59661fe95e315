package peer_test

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

// trouble is something that goes wrong for a while.
type trouble struct {
	name     string
	from, to time.Time
	begin    func()
	end      func()
	cut      func() // makes the cut again after others were healed; nil if it is none
}

// playTime is about how long a schedule lasts, without its end.
const playTime = 7 * time.Second

// plan draws what goes wrong.
func (s *sim) plan() {
	for range s.rnd.IntN(5) {
		t := s.trouble()
		t.from = s.began.Add(500*time.Millisecond + s.upTo(playTime))
		t.to = t.from.Add(s.within(50*time.Millisecond, 6*time.Second)) // a silent hub is gone after 3.5 s
		s.due = append(s.due, t)
	}
	slices.SortFunc(s.due, func(a, b *trouble) int { return a.from.Compare(b.from) })
}

func (s *sim) trouble() *trouble {
	h := s.hubs[s.rnd.IntN(len(s.hubs))]
	other := s.hubs[(h.index+1+s.rnd.IntN(len(s.hubs)-1))%len(s.hubs)]
	none := func() {}
	switch n := s.rnd.IntN(100); {
	case n < 24:
		return &trouble{name: "kill " + h.name, begin: func() {
			if h.now != nil {
				s.kill(h)
				h.back = time.Now().Add(s.within(50*time.Millisecond, 3*time.Second))
			}
		}, end: none}
	case n < 32:
		return &trouble{name: "stop " + h.name, begin: func() {
			if s.usable(h) {
				var alone sync.WaitGroup
				alone.Add(1)
				s.stop(h, &alone)
				h.back = time.Now().Add(s.within(50*time.Millisecond, 3*time.Second))
			}
		}, end: none}
	case n < 37:
		return &trouble{name: "hand on " + h.name, begin: func() {
			if l := h.now; s.usable(h) {
				s.running.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
					defer cancel()
					l.HandOn(ctx)
				})
			}
		}, end: none}
	case n < 54:
		return s.cutting("isolate "+h.name, func() { s.net.Isolate(h.name) })
	case n < 60:
		return s.cutting("cut "+h.name+other.name, func() { s.net.Cut(h.name, other.name) })
	case n < 66:
		return s.cutting("cut one way "+h.name+other.name, func() { s.net.CutOneWay(h.name, other.name) })
	case n < 80:
		return &trouble{name: "pause " + h.name, begin: func() {
			if h.now != nil {
				h.paused = true
				s.net.Pause(h.name)
			}
		}, end: func() {
			if h.paused {
				h.paused = false
				s.net.Resume(h.name)
			}
		}}
	case n < 90:
		w := coretest.Weather{Least: 50 * time.Microsecond, Most: s.within(time.Millisecond, 60*time.Millisecond), Lost: s.rnd.IntN(250), Twice: s.rnd.IntN(150)}
		return &trouble{name: "weather", begin: func() { s.net.SetWeather(w) }, end: s.net.Calm}
	case n < 97:
		refused, unheard, slow := s.rnd.IntN(400), s.rnd.IntN(500), s.upTo(300*time.Millisecond)
		return &trouble{name: "store", begin: func() { s.store.weather(refused, unheard, slow) }, end: func() { s.store.weather(0, 0, 0) }}
	default:
		return &trouble{name: "claims", begin: func() { s.claims.Stall(true) }, end: func() { s.claims.Stall(false) }}
	}
}

func (s *sim) cutting(name string, cut func()) *trouble {
	t := &trouble{name: name, cut: cut}
	t.begin = func() {
		s.cuts = append(s.cuts, t)
		cut()
	}
	t.end = func() {
		s.cuts = slices.DeleteFunc(s.cuts, func(o *trouble) bool { return o == t })
		s.net.Heal()
		for _, o := range s.cuts {
			o.cut()
		}
	}
	return t
}

// disturb begins and ends what is due; with all it ends everything.
func (s *sim) disturb(all bool) {
	now := time.Now()
	for _, t := range s.due {
		if t.begin != nil && !all && now.After(t.from) {
			s.note("trouble ", t.name)
			t.begin()
			t.begin = nil
			s.moment()
		}
		if t.begin == nil && t.end != nil && (all || now.After(t.to)) {
			s.note("end of ", t.name)
			t.end()
			t.end = nil
			s.moment()
		}
	}
}
