package conversation

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The number of events of a page by default, and at most.
const (
	defaultPageEvents = 50
	maxPageEvents     = 500
)

// GetEvents implements the service. It returns the history turn by turn, in an order that
// never changes: later turns are left out until one that still runs has ended. A cursor is
// the id of an event.
func (s *Service) GetEvents(ctx context.Context, r *pb.GetEventsRequest) (*pb.GetEventsResponse, error) {
	p, err := s.opts.Principal(ctx)
	if err != nil {
		return nil, err
	}
	if err := checkKey(r.GetConversationKey()); err != nil {
		return nil, err
	}
	page, err := s.newPage(r)
	if err != nil {
		return nil, err
	}
	missing, err := s.hub.Thread(ctx, p, core.ThreadID(r.GetConversationKey()), page.from.Task, page.add)
	if err != nil {
		return nil, statusError(err)
	}
	out := &pb.GetEventsResponse{Events: page.events, HasMore: page.more}
	if page.more {
		out.NextCursor = proto.String(page.events[len(page.events)-1].GetId())
	}
	if missing {
		s.count("gap")
		out.Events = append([]*pb.Event{gapEvent(r.GetConversationKey(), nil).GetEvent()}, out.Events...)
	}
	return out, nil
}

// page collects a page of a conversation.
type page struct {
	key          string
	from         core.Place
	since, until time.Time
	limit, room  int
	maxBytes     int
	events       []*pb.Event
	more         bool
}

// newPage returns the empty page for a request.
func (s *Service) newPage(r *pb.GetEventsRequest) (*page, error) {
	g := &page{key: r.GetConversationKey(), limit: defaultPageEvents, maxBytes: s.opts.MaxMessageBytes, room: s.opts.MaxMessageBytes - pageOverhead}
	if r.GetLimit() > 0 {
		g.limit = min(int(r.GetLimit()), maxPageEvents)
	}
	var err error
	if r.Since != nil {
		if g.since, err = time.Parse(time.RFC3339, r.GetSince()); err != nil {
			return nil, invalidArgument("invalid since timestamp")
		}
	}
	if r.Until != nil {
		if g.until, err = time.Parse(time.RFC3339, r.GetUntil()); err != nil {
			return nil, invalidArgument("invalid until timestamp")
		}
	}
	if g.from, err = core.ParsePlace(r.GetCursor()); err != nil {
		return nil, invalidArgument("invalid cursor: " + core.AsFault(err).Message)
	}
	return g, nil
}

// pageOverhead is the size of a page without its events, at most.
const pageOverhead = 4 << 10

// add adds the history of the next turn. It reports false when the page is full, or when
// the turn still runs.
func (g *page) add(t *task.Task) bool {
	events := t.Events()
	for _, e := range historyOf(g.key, t, events, g.maxBytes) {
		switch {
		case e.place.Compare(g.from) <= 0, e.at.Before(g.since), !g.until.IsZero() && e.at.After(g.until):
			continue
		}
		size := proto.Size(e.event) + 8
		if len(g.events) == g.limit || size > g.room && len(g.events) > 0 {
			g.more = true
			return false
		}
		g.events, g.room = append(g.events, e.event), g.room-size
	}
	return events[len(events)-1].Body.Kind().Ends()
}
