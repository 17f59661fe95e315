package e2e

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// An MCP server, an agent of an editor or a native one asks with a form: the page shows each field by its type.
func TestAPersonFillsInAFormOnTheConsole(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	task := givenTo(t, h, agent, "alice", "plan")
	p := b.open("/#/waiting")
	p.shows(".state", "Nothing waits for you.")
	said := make(chan question.Outcome, 1)
	asks := func(schema string) {
		go func() {
			o, err := agent.AskPeople(t.Context(), task.ID(), question.Question{
				Text: "Where?\nAnswer in lines.", Options: []core.Option{{Label: "Rather not"}},
				Form: &question.Form{Message: "Where, " + hostile + "?", Schema: json.RawMessage(schema), Decline: "Rather not"},
			})
			if err != nil {
				t.Errorf("got %v, want an answer", err)
			}
			said <- o
		}()
	}
	const schema = `{"type":"object","required":["city"],"properties":{
		"city":{"type":"string","title":"City","maxLength":20},"nights":{"type":"integer","default":2,"minimum":1},"price":{"type":"number"},
		"class":{"type":"string","oneOf":[{"const":"1","title":"First"},{"const":"2","title":"Second"}],"default":"2"},
		"pets":{"type":"array","items":{"type":"string","enum":["cat","dog"]}},"sure":{"type":"boolean","default":true},"note":{"type":"string"}}}`
	asks(schema)
	p.shows(".card legend", "Where, "+hostile)
	p.await(`document.querySelectorAll('.card input[type="number"]').length === 2 && document.querySelector('.card select').value === '2' && document.querySelector('.card select option:checked').textContent === 'Second'`)
	p.click(`.card input[maxlength="20"]`)
	p.write("Rome")
	p.click(`.card fieldset fieldset label:last-child input`)
	p.click(`.card button[type="submit"]`)
	p.shows(".note", "You answered it.")
	if got, want := (<-said).Content, `{"city":"Rome","class":"2","nights":2,"pets":["dog"],"sure":true}`; !sameJSON(got, []byte(want)) {
		t.Errorf("got %s, want %s", got, want)
	}
	asks(schema)
	p.await(`document.querySelectorAll('.card select').length > 0 && [...document.querySelectorAll('.card .no')].filter((e) => !e.disabled).map((e) => e.click()).length === 1`)
	p.shows(".note", "You declined to answer.")
	if got := <-said; len(got.Selected) != 1 || got.Selected[0] != "Rather not" {
		t.Errorf("got %+v, want the option that declines", got)
	}
	asks(`{"properties":{"a":null}}`)
	p.shows(".card legend", "Answer in lines.")
	p.await(`[...document.querySelectorAll('.card input[value="Rather not"]')].filter((e) => !e.disabled).map((e) => e.click()).length === 1`)
	p.await(`[...document.querySelectorAll('.card .yes')].filter((e) => !e.disabled).map((e) => e.click()).length === 1`)
	<-said
	agent.report(task, core.Done{Text: "Rome"})
}
