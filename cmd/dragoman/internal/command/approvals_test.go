package command

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestTheCallMustBeNamedWhereSeveralWait(t *testing.T) {
	waiting := []task.PendingApproval{{Task: "1", ID: "a"}, {Task: "2", ID: "b c"}, {Task: "2", ID: "d"}}
	for _, c := range []struct {
		task core.TaskID
		all  bool
		call string
		want string
	}{{"1", false, "a", ""}, {"2", true, "b c", ""}, {"2", false, "", `name one of "b c", d`}, {"3", false, "", "nothing of the task waits"}} {
		call, err := theCall(waiting, c.task, c.all)
		if call != c.call || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("task %s, all %t: got %q and %v, want %q and %q", c.task, c.all, call, err, c.call, c.want)
		}
	}
}
