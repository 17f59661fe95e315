package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// lastTask stands for the last task of the caller.
const lastTask = "last"

// shortest is the least number of characters that a table shows of an id. Ids begin with the time, so it is the end.
const shortest = 6

// isWhole reports whether a text is an id of the hub as it is, and not a part of one.
func isWhole(id string) bool { return len(id) == 36 && uuid.Validate(id) == nil }

// shortened returns a function that returns the ending by which a person may name one of the ids. What is no id of the
// hub stays as it is.
func shortened(ids []string) func(id string) string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return !isWhole(id) })
	n := shortest
	for ; n < 36; n++ {
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id[36-n:]] = true
		}
		if len(seen) == len(ids) {
			break
		}
	}
	return func(id string) string {
		if !isWhole(id) {
			return id
		}
		return id[36-n:]
	}
}

// named returns the one of the ids that a person means by its beginning, by its ending, or as a whole. It returns what
// was given if none is meant, so that the hub says what it does not know.
func named(given string, ids []string) (string, error) {
	var fit []string
	for _, id := range ids {
		switch {
		case id == given:
			return id, nil
		case !slices.Contains(fit, id) && (strings.HasPrefix(id, given) || strings.HasSuffix(id, given)):
			fit = append(fit, id)
		}
	}
	switch len(fit) {
	case 0:
		return given, nil
	case 1:
		return fit[0], nil
	}
	return "", usagef("several ids begin or end with %q: %s; give more of it", given, visible(strings.Join(fit, ", ")))
}

// findTask returns the id of the task that a person means: by a unique beginning or ending among the newest, or as their last.
func findTask(ctx context.Context, hub *client.Client, given string) (core.TaskID, error) {
	if isWhole(given) {
		return core.TaskID(given), nil
	}
	if given == lastTask {
		return ownLast(ctx, hub)
	}
	var list struct{ Tasks []struct{ ID string } }
	if err := hub.Get(ctx, fmt.Sprintf("/v1/tasks?limit=%d", task.MostListed), &list); err != nil {
		return core.TaskID(given), nil //nolint:nilerr // the hub may know it, or says why not
	}
	var ids []string
	for _, t := range list.Tasks {
		ids = append(ids, t.ID)
	}
	id, err := named(given, ids)
	return core.TaskID(id), err
}

// ownLast returns the id of the last task that the caller asked for.
func ownLast(ctx context.Context, hub *client.Client) (core.TaskID, error) {
	var at hubStatus
	if err := hub.Get(ctx, "/v1/hub", &at); err != nil {
		return "", err
	}
	if at.Principal == "" {
		return "", usagef("%s: the hub does not say who you are, as one before this version: give the id; 'dragoman tasks' lists them", lastTask)
	}
	id, err := newest(ctx, hub, client.TaskQuery{From: at.Principal})
	if err == nil && id == "" {
		err = usagef("%s: you have asked for no task that is kept", lastTask)
	}
	return id, err
}

// newest returns the id of the newest task that a query selects; "" if there is none.
func newest(ctx context.Context, hub *client.Client, q client.TaskQuery) (core.TaskID, error) {
	q.Limit = 1
	list, err := hub.Tasks(ctx, q)
	if err != nil || len(list.Tasks) == 0 {
		return "", err
	}
	var first struct{ ID core.TaskID }
	err = json.Unmarshal(list.Tasks[0], &first)
	return first.ID, err
}
