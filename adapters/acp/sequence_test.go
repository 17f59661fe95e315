package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// declareProgress declares the extension progress.
func (a *peer) declareProgress() *peer {
	a.Helper()
	a.send(`{"id":"%s","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`, core.NewID())
	a.expect(wire.KindHello)
	return a
}

// readProgress returns the progress of a request and the envelope that ends it.
func (a *peer) readProgress(ref string) (progress []wire.Envelope, last wire.Envelope) {
	a.Helper()
	for {
		e := a.next()
		switch {
		case e.Ref != ref:
			a.Fatalf("%s received %s, want ref %s", a.name, e.Raw, ref)
		case e.Kind != wire.KindProgress:
			return progress, e
		}
		progress = append(progress, e)
	}
}

func TestTheProgressOfEachSenderHasIncreasingNumbers(t *testing.T) {
	for name, c := range map[string]struct{ capabilities, pieces, kind, end string }{
		"tokens of a response":        {`{"extensions":["progress"]}`, "1 2 3", "query", `"response","payload":{"summary":"roses","tokens_used":47}`},
		"tokens of a result":          {`{"extensions":["progress"]}`, "1 2 3", "delegate", `"result","payload":{"status":"completed","outcome":"roses","tokens_used":47}`},
		"tokens of an error":          {`{"extensions":["progress"]}`, "1 2 3", "query", `"error","payload":{"code":"internal","message":"oops","partial":{"summary":"roses","tokens_used":47}}`},
		"files and tokens":            {`{"extensions":["progress"]}`, "7 9 11", "query", `"response","payload":{"summary":"roses","data":{"files":[{"name":"f","data":"AA=="},{"name":"g","data":"AA=="}]},"tokens_used":47}`},
		"an agent without progress":   {`{}`, "", "query", `"response","payload":{"summary":"roses","data":{"files":[{"name":"f","data":"AA=="}]},"tokens_used":47}`},
		"a failed result with a file": {`{"extensions":["progress"]}`, "1", "delegate", `"result","payload":{"status":"failed","outcome":"roses","error":"oops","data":{"files":[{"name":"f","data":"AA=="}]}}`},
		"numbers that cannot go on":   {`{"extensions":["progress"]}`, "18446744073709551615", "query", `"response","payload":{"summary":"roses","tokens_used":47}`},
		"an answer to another matter": {`{"extensions":["progress"]}`, "1 2", "query", `"result","payload":{"status":"completed","outcome":"roses","tokens_used":47}`},
		"one with usage too":          {`{"extensions":["progress"]}`, "1 usage", "query", `"response","payload":{"summary":"roses","tokens_used":47}`},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				fam, kit := s.agent("fam", c.capabilities), s.peer("kit").declareProgress()
				kit.send(`{"id":"q1","to":"fam","kind":"%s","payload":{"question":"?","task":"!"}}`, c.kind)
				if c.kind == "delegate" {
					kit.expect(wire.KindAck)
				}
				fam.expect(wire.Kind(c.kind))
				sent := 0
				for _, seq := range strings.Fields(c.pieces) {
					piece := `"text":"ro"`
					if seq == "usage" {
						seq, piece = "2", `"usage":{"input":1,"output":2}`
					}
					fam.send(`{"id":"%s","kind":"progress","ref":"q1","payload":{"seq":%s,%s}}`, core.NewID(), seq, piece)
					sent++
				}
				fam.send(`{"id":"end","ref":"q1","kind":%s}`, c.end)
				progress, last := kit.readProgress("q1")
				if len(progress) != sent {
					t.Errorf("got %d pieces, want the %d that the agent sent: the end has the rest", len(progress), sent)
				}
				highest := map[string]uint64{}
				for _, e := range progress {
					seq, _, err := e.Progress()
					if err != nil || seq <= highest[e.From] {
						t.Errorf("got %s after %d (%v), want an increasing number", e.Raw, highest[e.From], err)
					}
					highest[e.From] = seq
				}
				var tokens struct {
					Used    int64        `json:"tokens_used"`
					Partial wire.Partial `json:"partial"`
				}
				if err := json.Unmarshal(last.Payload, &tokens); err != nil {
					t.Fatal(err)
				}
				want := map[bool]int64{true: 0, false: 47}[name == "a failed result with a file"]
				if name == "an answer to another matter" {
					want = 47
				}
				if got := tokens.Used + tokens.Partial.TokensUsed; got != want {
					t.Errorf("tokens of the end: got %d in %s, want %d", got, last.Raw, want)
				}
			})
		})
	}
}

// The client reads answers of agents with and without progress and counts everything once.
func TestAClientWithProgressCountsRepeatedContentOnce(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{}`)
		poet := s.plainAgent("poet", core.Card{})
		c := s.client(acptest.Options{ID: "kit", Progress: true})
		answers := make(chan core.Answer, 2)
		ask := func(to core.AgentID) {
			a, err := c.Ask(s.Context(), core.Request{To: core.ToAgent(to), Content: "?"}, nil)
			if err != nil {
				t.Errorf("%s: got %v, want no error", to, err)
			}
			answers <- a
		}
		go ask("fam")
		fam.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"roses","data":{"files":[{"name":"f","data":"AA=="}]},"tokens_used":47}}`, fam.expect(wire.KindQuery).ID)
		first := <-answers
		go ask("poet")
		s.report(poet, s.assigned(poet), core.Text{Text: "ro"}, core.Text{Text: "ses"}, core.File{Name: "f", Data: []byte{0}}, core.Usage{Output: 47}, core.Done{})
		for _, a := range []core.Answer{first, <-answers} {
			if a.Text != "roses" || len(a.Files) != 1 || a.Usage.Total() != 47 || a.TokensUsed != 47 {
				t.Errorf("%s: got %+v, want roses, one file and 47 tokens", a.Agent, a)
			}
		}
	})
}
