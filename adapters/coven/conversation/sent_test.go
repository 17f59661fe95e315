package conversation_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestAMessageIsRememberedForItsTimeAndBySender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{})
		joinAgent(t, h, "guide")
		var sender string
		s := conversation.NewService(h, conversation.Options{
			Remember: 3, RememberFor: time.Minute,
			Principal: func(context.Context) (core.Principal, error) {
				return core.Principal{ID: sender, Operator: true}, nil
			},
		}, serve)
		send := func(from, to, key string) (*pb.ClientSendMessageResponse, error) {
			sender = from
			return s.SendMessage(t.Context(), &pb.ClientSendMessageRequest{ConversationKey: to, Content: "go", IdempotencyKey: key})
		}
		known := func(from, key string) bool {
			t.Helper()
			r, err := send(from, "guide", key)
			if err != nil {
				t.Fatal(err)
			}
			return r.GetStatus() == "duplicate"
		}
		known("a", "k")
		if !known("a", "k") || known("b", "k") {
			t.Error("got it unknown to its sender or known to another, want the contrary")
		}
		<-time.After(time.Minute)
		if known("a", "k") {
			t.Error("got it known after its time, want it forgotten")
		}
		for i := range 5 {
			known("c", fmt.Sprint(i))
		}
		// The sender with the most messages loses its oldest.
		if !known("a", "k") || !known("c", "4") || !known("c", "3") || known("c", "2") {
			t.Error("got other messages known, want 3: that of a and the latest 2 of c")
		}
		for range 2 {
			if r, err := send("d", "nobody", "k"); status.Code(err) != codes.NotFound {
				t.Errorf("got %v and %v, want a message that was not sent to be sent again", r, err)
			}
		}
	})
}
