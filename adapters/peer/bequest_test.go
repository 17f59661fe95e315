package peer_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// endAfter waits until a task has its end at a hub, and returns it there.
func (w *world) endAfter(at string, id core.TaskID) (t *task.Task) {
	w.t.Helper()
	w.until("its end is known", func() (ended bool) {
		var err error
		t, err = w.hubs[at].Task(w.t.Context(), operator, id)
		return err == nil && t.HasEnded()
	})
	return t
}

// wentOn checks that a task was answered elsewhere after its hub had died, and reads the same at every
// hub. Its heir may have handed it on.
func (w *world) wentOn(id core.TaskID) {
	w.t.Helper()
	got := kinds(w.endAfter("a", id))
	if !strings.HasPrefix(got, "opened assigned retrying") || !strings.HasSuffix(got, "retrying assigned done") {
		w.t.Errorf("got %s, want it moved and answered", got)
	}
	w.same(id, got)
}

func TestATaskOfAHubThatDiesGoesOnOnlyWithAllOfItsRequest(t *testing.T) {
	secret, hidden := "sesame-open", []core.File{{Name: "a.bin", Data: []byte("\x00sesame-open\xff")}}
	for name, tt := range map[string]struct {
		request core.Request
		why     string // of its failure; "" if it goes on
	}{
		"plain":                    {core.Request{Content: "why?"}, ""},
		"a secret":                 {core.Request{Content: "why " + secret + "?"}, "what was redacted is not in the journal"},
		"an attachment":            {core.Request{Content: "why?", Attachments: []core.File{{Name: "a.bin", Data: []byte("\x00all\xff")}}}, ""},
		"a secret in one":          {core.Request{Content: "why?", Attachments: hidden}, "what was redacted is not in the journal"},
		"a secret in its own form": {core.Request{Content: "why?", Foreign: &core.Foreign{Dialect: "test", Wire: []byte("\x08" + secret)}}, "what was redacted is not in the journal"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c", "d", "e")
				var err error
				if w.redactor, err = redact.New(nil, []string{secret}); err != nil {
					t.Fatal(err)
				}
				bob, ann := w.join("b", thinker("bob")), w.person("b")
				tt.request.To = core.ToCapability("think")
				asked, err := ann.Open(tt.request, hub.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				assigned(t, bob)
				cid := w.join("c", thinker("cid"))
				time.Sleep(time.Second)
				w.net.Kill("b")
				w.hubs["b"].stopped.Store(true)
				if tt.why != "" {
					f, failed := w.endAfter("a", asked.ID()).Last().Body.(core.Failed)
					if !failed || f.Fault.Code != core.CodeUnreachable || !f.Fault.Retryable || !strings.Contains(f.Fault.Message, tt.why) {
						t.Errorf("got the end %+v, want it unreachable, to be asked again, as %s", f.Fault, tt.why)
					}
					return
				}
				held := assigned(t, cid)
				if got, want := held.Request().Attachments, tt.request.Attachments; len(got) != len(want) || len(want) > 0 && !bytes.Equal(got[0].Data, want[0].Data) {
					t.Errorf("got the attachments %q, want %q", got, want)
				}
				if err := cid.Report(held.ID(), core.Done{Text: "because"}, nil); err != nil {
					t.Fatal(err)
				}
				w.wentOn(asked.ID())
			})
		})
	}
}

func TestATaskOfAHubThatDiesGoesOnOnceItsHeirCanStoreIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob, ann := w.join("b", thinker("bob")), w.person("b")
		asked := ask(t, ann, core.ToCapability("think"))
		assigned(t, bob)
		cid := w.join("c", thinker("cid"))
		time.Sleep(time.Second)
		until := time.Now().Add(15 * time.Second)
		before := func(wr coretest.Write) error {
			if wr.Hub != "b" && time.Now().Before(until) {
				return errors.New("there is no leader")
			}
			return nil
		}
		w.before.Store(&before)
		w.net.Kill("b")
		w.hubs["b"].stopped.Store(true)
		time.Sleep(15 * time.Second)
		answers(t, cid, "because")
		w.wentOn(asked.ID())
	})
}

func TestATaskOfAHubThatDiesGoesOnWithTheRightsOfItsRequester(t *testing.T) {
	for _, role := range []string{"thinker", "guest"} {
		t.Run(role, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := coretest.Rules(t, "* see,read", "role:thinker ask", "role:guest ask bob")
				w := newWorldWith(t, func(_ string, o *hub.Options) { o.Authorizer = rules }, "a", "b", "c", "d", "e")
				bob := w.join("b", thinker("bob"))
				ann := w.hubs["b"].Connect(hub.Identity{Dialect: "test", Principal: core.Principal{ID: "ann", Credential: &core.Credential{Roles: []string{role}}}})
				asked := ask(t, ann, core.ToCapability("think"))
				assigned(t, bob)
				for _, at := range []string{"a", "c", "d", "e"} { // they have copies, which do not know the rights
					read, err := w.hubs[at].Task(t.Context(), operator, asked.ID())
					if err != nil {
						t.Fatal(err)
					}
					if err := w.person(at).Watch(read, core.Cursor{}, nil); err != nil {
						t.Fatal(err)
					}
				}
				cid := w.join("c", thinker("cid"))
				time.Sleep(time.Second)
				w.net.Kill("b")
				w.hubs["b"].stopped.Store(true)
				if role == "thinker" {
					answers(t, cid, "because")
					w.wentOn(asked.ID())
				} else {
					w.same(asked.ID(), "opened assigned failed")
				}
			})
		})
	}
}

// What is not stored nobody has read: another agent may say it.
func TestATaskOfAHubThatDiesGoesOnIfWhatWasSaidIsNotStored(t *testing.T) {
	for _, at := range []string{"a", "c"} {
		t.Run("read at "+at, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				bob, ann := w.join("b", thinker("bob")), w.person(at)
				asked := ask(t, ann, core.ToCapability("think"))
				held := assigned(t, bob)
				cid := w.join("c", thinker("cid"))
				time.Sleep(time.Second) // the journal has it
				w.delayWrites("b", time.Minute, nil)
				if err := bob.Report(held.ID(), core.Text{Text: "perhaps"}, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				if got := kinds(asked); got != "opened assigned" {
					t.Errorf("before it is stored: got %s, want no text", got)
				}
				w.net.Kill("b")
				w.hubs["b"].stopped.Store(true)
				answers(t, cid, "because")
				w.wentOn(asked.ID())
			})
		})
	}
}
