package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// titleRunes is the maximum length of a title.
const titleRunes = 80

// listSessions lists the threads in which the principal has asked the agent, by this dialect,
// the latest first. A page is what some tasks are the turns of, so it may be short.
func (c *connection) listSessions(_ context.Context, id json.RawMessage, params strictjson.Value) *jsonrpc.Error {
	p, fault := wire.Read[wire.ListSessionsRequest](params)
	if fault != nil {
		return fault
	}
	return c.queue(func(ctx context.Context) error {
		page, err := c.sessions(ctx, p)
		if err != nil {
			return c.refuse(ctx, id, errorOf(err))
		}
		return c.answer(ctx, id, strictjson.Encode(page))
	})
}

func (c *connection) sessions(ctx context.Context, p wire.ListSessionsRequest) (wire.ListSessionsResponse, error) {
	page := wire.ListSessionsResponse{Sessions: []wire.SessionInfo{}}
	filter := task.Filter{From: c.opts.Principal.ID, Before: core.TaskID(p.Cursor), Limit: task.MostListed}
	tasks, err := c.hub.Tasks(ctx, c.opts.Principal, filter)
	if err != nil {
		return page, err
	}
	page.NextCursor = string(tasks.Before)
	at := map[core.ThreadID]int{}
	for _, t := range tasks.Tasks {
		r := t.Request
		if t.From.Dialect != Dialect || r.To != c.opts.Agent || r.Thread == "" || r.Foreign == nil {
			continue
		}
		where := strictjson.ParseValid(r.Foreign.JSON).Get("cwd")
		cwd, _ := where.Text()
		if p.CWD != "" && p.CWD != cwd {
			continue
		}
		i, known := at[r.Thread]
		if !known {
			latest, err := c.hub.LatestTurns(ctx, c.opts.Principal, r.Thread, 1)
			if err != nil {
				return page, err
			}
			if i = len(page.Sessions); p.Cursor != "" && len(latest) > 0 && string(latest[0].ID()) >= p.Cursor {
				i = -1 // it was on an earlier page
			} else {
				page.Sessions = append(page.Sessions, wire.SessionInfo{
					SessionID: string(r.Thread), CWD: cmp.Or(cwd, "/"), UpdatedAt: t.OpenedAt.UTC().Format(time.RFC3339),
				})
			}
			at[r.Thread] = i
		}
		if i >= 0 { // the earliest task names it
			page.Sessions[i].Title = titleOf(r.Content)
		}
	}
	return page, nil
}

// titleOf returns the beginning of what was asked.
func titleOf(content string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(content), "\n")
	if runes := []rune(line); len(runes) > titleRunes {
		return string(runes[:titleRunes-1]) + "…"
	}
	return line
}
