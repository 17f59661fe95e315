package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// subscribe subscribes, and checks that it is acknowledged.
func (a *peer) subscribe(id string, topics ...string) {
	a.Helper()
	list, _ := json.Marshal(topics)
	a.send(`{"id":"%s","kind":"subscribe","payload":{"topics":%s}}`, id, list)
	if got := expect[wire.Ack](a, wire.KindAck, id); !got.Accepted {
		a.Fatalf("%s subscribes: got %+v, want accepted", a.name, got)
	}
}

func TestANotifyWithoutAnAddressReachesSubscribersUnchanged(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam, gym := s.peer("kit"), s.peer("fam"), s.peer("gym")
		fam.subscribe("s1", "hans.*")
		gym.subscribe("s1", "*.location", "sport.>")
		kit.send(`{"id":"n1","kind":"notify","payload":{"topic":"hans.location","data":{"at":"gym"},"odd":1},"x":[1, 2]}`)
		for _, a := range []*peer{fam, gym} {
			want := `{"id":"n1","kind":"notify","payload":{"topic":"hans.location","data":{"at":"gym"},"odd":1},"x":[1, 2],"from":"kit","to":"` + a.name + `"}`
			if got := string(a.expect(wire.KindNotify).Raw); got != want {
				t.Errorf("%s: got %s\nwant %s", a.name, got, want)
			}
		}
		kit.send(`{"id":"n2","kind":"notify","payload":{"topic":"hans.mood"}}`)
		fam.expect(wire.KindNotify)
		for _, a := range []*peer{kit, fam, gym} {
			a.expectNothing()
		}
	})
}

func TestANoticeOfAnotherDialectHasTheIDOfItsTask(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, p := s.peer("fam"), s.plainSession("p")
		fam.subscribe("s1", ">")
		task, err := p.Open(core.Request{To: core.ToHub(), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "a.b", Data: json.RawMessage(`7`), Importance: core.ImportanceHigh}}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		e := fam.expect(wire.KindNotify)
		if want := `{"topic":"a.b","data":7,"importance":"high"}`; e.ID != string(task.ID()) || e.From != "p" || string(e.Payload) != want {
			t.Errorf("got %s, want %s from p with the id %s", e.Raw, want, task.ID())
		}
	})
}

func TestASubscribedRecipientGetsANoticeOnce(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, other := s.peer("kit"), s.peer("other")
		fam := s.agent("fam", `{}`)
		fam.subscribe("s1", ">")
		other.subscribe("s1", ">")
		kit.send(`{"id":"n1","to":"fam","kind":"notify","payload":{"topic":"a"}}`)
		fam.expect(wire.KindNotify)
		other.expect(wire.KindNotify)
		fam.expectNothing()
		kit.send(`{"id":"u1","to":"fam","kind":"strange"}`)
		fam.expect("strange")
		other.expectNothing() // envelopes between two peers are not published
	})
}

func TestAnInvalidSubscriptionIsRefused(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.agent("kit", `{}`)
		for i, c := range []struct {
			say   string
			code  wire.Code
			about string
		}{
			{`"kind":"subscribe","payload":{"topics":[]}`, wire.CodeInvalidEnvelope, "no topics"},
			{`"kind":"subscribe","payload":{"topics":["a..b"]}`, wire.CodeInvalidEnvelope, "empty word"},
			{`"kind":"subscribe","payload":{"topics":"a"}`, wire.CodeInvalidEnvelope, "topics"},
			{`"kind":"subscribe"`, wire.CodeInvalidEnvelope, "payload"},
			{`"kind":"subscribe","to":"kit","payload":{"topics":["a"]}`, wire.CodeInvalidEnvelope, "leave to out"},
			{`"kind":"unsubscribe","to":"kit"`, wire.CodeInvalidEnvelope, "leave to out"},
			{`"kind":"notify","payload":{"topic":"dragoman.shutdown"}`, wire.CodeInvalidEnvelope, "the hub's own"},
			{`"kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"q9","content":"x"}}`, wire.CodePeerNotFound, "no query or delegate of yours"},
			{`"to":"fam","kind":"notify","payload":{"topic":"dragoman.context","data":{"ref":"q9","content":"x"}}`, wire.CodePeerNotFound, "no query or delegate of yours"},
			{`"to":"fam","kind":"notify","payload":{"topic":"dragoman.shutdown"}`, wire.CodeInvalidEnvelope, "the hub's own"},
			{`"kind":"notify","payload":{"topic":"a"}`, wire.CodePeerNotFound, "nobody subscribes"},
		} {
			kit.send(`{"id":"i%d",%s}`, i, c.say)
			kit.refused(fmt.Sprint("i", i), c.code, c.about)
		}
		kit.subscribe("s1", "a")
		for i, want := range []bool{true, false} {
			kit.send(`{"id":"u%d","to":"hub","kind":"unsubscribe"}`, i)
			if got := expect[wire.Ack](kit, wire.KindAck, fmt.Sprint("u", i)); got.Accepted != want {
				t.Errorf("unsubscribe: got %t, want %t", got.Accepted, want)
			}
		}
	})
}

func TestAReconnectedSubscriberGetsNoticesAgainWithTheSameIDs(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.peer("fam")
		fam.subscribe("s1", "a.>")
		kit.send(`{"id":"n1","kind":"notify","payload":{"topic":"a.b"}}`)
		fam.expect(wire.KindNotify)
		time.Sleep(2 * time.Minute)
		kit.send(`{"id":"n2","kind":"notify","payload":{"topic":"a.b"}}`)
		fam.expect(wire.KindNotify)
		fam.disconnect()
		kit.send(`{"id":"n3","kind":"notify","payload":{"topic":"a.c"}}`)
		kit.expectNothing() // no error: the hub waits for fam
		fam = s.peer("fam")
		for _, id := range []string{"n2", "n3"} { // the first counts as received
			if e := fam.expect(wire.KindNotify); e.ID != id {
				t.Errorf("got %s, want %s", e.Raw, id)
			}
		}
		fam.expectNothing()
	})
}

func TestANotifyThatMayBeLostWithItsConnectionIsSentAgainWithItsID(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.agent("fam", `{}`)
		kit.send(`{"id":"n1","to":"fam","kind":"notify","payload":{"topic":"a","x":1}}`)
		first := fam.expect(wire.KindNotify)
		fam.disconnect()
		fam = s.peer("fam")
		if again := fam.expect(wire.KindNotify); string(again.Raw) != string(first.Raw) {
			t.Errorf("got %s, want %s unchanged", again.Raw, first.Raw)
		}
		s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Intent: core.IntentNotify, Notice: &core.Notice{Topic: "b"}})
		first = fam.expect(wire.KindNotify)
		fam.disconnect()
		fam = s.peer("fam")
		fam.expect(wire.KindNotify)
		if again := fam.expect(wire.KindNotify); string(again.Payload) != string(first.Payload) || again.ID != first.ID || again.From != first.From {
			t.Errorf("of another dialect: got %s, want %s unchanged", again.Raw, first.Raw)
		}
		time.Sleep(2 * time.Minute) // sent envelopes now count as received
		fam.disconnect()
		fam = s.peer("fam")
		fam.expectNothing()
	})
}

func TestASubscriberIsInformedOfDroppedAndOversizedNotices(t *testing.T) {
	withHubOptions(t, hub.Options{Limits: hub.Limits{NoticeBytes: 8 << 10}}, func(t *testing.T, s *setup) {
		conn, ended := s.connect(acp.Options{AgentID: "fam", MaxEnvelopeBytes: 2 << 10})
		fam := &peer{setup: s, conn: conn, ended: ended, name: "fam"}
		fam.expect(wire.KindDiscover)
		fam.subscribe("s1", "a")
		kit := s.peer("kit")
		kit.send(`{"id":"n1","kind":"notify","payload":{"topic":"a","data":"%s"}}`, strings.Repeat("x", 2<<10))
		if got := expect[wire.Notify](fam, wire.KindNotify, ""); got.Topic != wire.TopicMissed || string(got.Data) != `{"missed":1}` {
			t.Errorf("got %+v, want one missed", got)
		}
		time.Sleep(2 * time.Minute)
		fam.disconnect()
		for i := range 12 {
			kit.send(`{"id":"m%d","kind":"notify","payload":{"topic":"a"}}`, i)
		}
		kit.expectNothing()
		fam = s.peer("fam")
		got := expect[wire.Notify](fam, wire.KindNotify, "")
		var missed struct{ Missed int }
		_ = json.Unmarshal(got.Data, &missed)
		if got.Topic != wire.TopicMissed || missed.Missed == 0 {
			t.Fatalf("got %+v, want the number of missed notices", got)
		}
		for i := missed.Missed; i < 12; i++ {
			if e := fam.expect(wire.KindNotify); e.ID != fmt.Sprint("m", i) {
				t.Errorf("got %s, want m%d", e.Raw, i)
			}
		}
		fam.expectNothing()
	})
}
