package conversation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestAMessageIsUnreadUntilItsAnswerIsSentOrItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(time.Minute)
		u.add("1")
		u.add("2")
		u.remove("1")
		u.remove("never")
		if u.has("1") || !u.has("2") || u.has("never") {
			t.Error("want the second alone unread")
		}
		<-time.After(2 * time.Minute)
		u.add("3")
		if u.has("2") || !u.has("3") || u.tasks.Len() != 1 {
			t.Errorf("got %d, want the third alone", u.tasks.Len())
		}
		for i := range maxUnread + 5 {
			u.add(core.TaskID(fmt.Sprint("x", i)))
		}
		if u.tasks.Len() != maxUnread {
			t.Errorf("got %d, want %d", u.tasks.Len(), maxUnread)
		}
	})
}
