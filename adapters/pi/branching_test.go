package pi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// treeOf returns the data of get_tree for a session.
func treeOf(c *testClient, session string) (leaf string, nodes []conversation.TreeNode) {
	c.t.Helper()
	var got struct {
		CurrentLeafID *string                 `json:"currentLeafId"`
		Nodes         []conversation.TreeNode `json:"nodes"`
	}
	if err := json.Unmarshal(c.ok(`{"type":"get_tree","sessionId":"`+session+`"}`).Data, &got); err != nil {
		c.t.Fatal(err)
	}
	if got.CurrentLeafID != nil {
		leaf = *got.CurrentLeafID
	}
	return leaf, got.Nodes
}

func shownIn(nodes []conversation.TreeNode) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.EntryType+" "+n.Text+" "+n.Label)
	}
	return all
}

func TestAForkKeepsTheLabelsOfItsBranch(t *testing.T) {
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	c.ok(`{"type":"set_session_name","sessionId":"s","name":"mine"}`)
	_, nodes := treeOf(c, "s")
	c.ok(`{"type":"navigate_tree","sessionId":"s","targetId":"` + nodes[2].EntryID + `","options":{"label":"here"}}`)
	before := fileOf(c, "s")
	f := c.ok(`{"type":"fork","sessionId":"s","entryId":"` + nodes[3].EntryID + `"}`)
	if !has(f, `"text":"two"`, `"cancelled":false`) {
		t.Errorf("got %s", f.Data)
	}
	_, nodes = treeOf(c, "s")
	want := []string{"model_change coven/x ", "message one ", "message you said one here", "session_info mine ", "label here → " + nodes[2].EntryID + " "}
	if d := cmp.Diff(want, shownIn(nodes)); d != "" {
		t.Errorf("the fork (-want +got):\n%s", d)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"other"}`)
	flush(s)
	if got := readFile(t, fileOf(c, "s")).Header.ParentSession; got != before {
		t.Errorf("got the parent %s, want %s", got, before)
	}
	for _, id := range []string{nodes[0].EntryID, nodes[2].EntryID, nodes[4].EntryID, "no"} { // not of the user
		c.fails(`{"type":"fork","sessionId":"s","entryId":"`+id+`"}`, "Invalid entry ID for forking")
	}
}

// withBranch returns a session with a branch, whose agent works as given, and the command that
// leaves the branch with a summary.
func withBranch(t *testing.T, work func(*testAgent, hub.Batch)) (*pi.Server, *testClient, string) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "x"}, work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	_, nodes := treeOf(c, "s")
	return s, c, `{"type":"navigate_tree","sessionId":"s","targetId":"` + nodes[1].EntryID + `","options":{"summarize":true,"label":"back","customInstructions":"say it"%s}}`
}

func TestANavigationWhoseSummaryFailsChangesNothing(t *testing.T) {
	for want, end := range map[string][]core.Body{
		"no idea":                   {core.Failed{Fault: core.NewFault(core.CodeInternal, "no idea")}},
		"the agent gave no summary": {core.Done{}},
	} {
		_, c, command := withBranch(t, func(a *testAgent, b hub.Batch) {
			switch {
			case assigned(b) && strings.Contains(b.Task.Request().Content, "say it"):
				a.report(b.Task, end...)
			default:
				echoAgent(a, b)
			}
		})
		leaf, nodes := treeOf(c, "s")
		c.fails(fmt.Sprintf(command, ""), want)
		if after, now := treeOf(c, "s"); after != leaf || len(now) != len(nodes) {
			t.Errorf("%s: got the leaf %s of %d entries, want %s of %d", want, after, len(now), leaf, len(nodes))
		}
	}
}

func TestASummaryHasTheLabelAndTheInstructionsOfTheClient(t *testing.T) {
	_, c, command := withBranch(t, echoAgent)
	c.ok(fmt.Sprintf(command, `,"replaceInstructions":true`))
	leaf, nodes := treeOf(c, "s")
	want := []string{"branch_summary you said say it back", "label back → " + nodes[len(nodes)-2].EntryID + " "}
	if d := cmp.Diff(want, shownIn(nodes[len(nodes)-2:])); d != "" || leaf != nodes[len(nodes)-1].EntryID {
		t.Errorf("got the leaf %s and (-want +got):\n%s", leaf, d)
	}
}

func TestDeletingASessionCancelsItsSummary(t *testing.T) {
	requested := make(chan struct{}, 1)
	_, c, command := withBranch(t, func(a *testAgent, b hub.Batch) {
		if assigned(b) && strings.Contains(b.Task.Request().Content, "say it") {
			requested <- struct{}{}
			return
		}
		echoAgent(a, b)
	})
	done := make(chan pitest.Frame, 1)
	go func() { done <- c.do(fmt.Sprintf(command, "")) }()
	<-requested
	c.ok(`{"type":"delete_session","sessionId":"s"}`)
	if f := <-done; !has(f, `"cancelled":true`) {
		t.Errorf("got %s, want the move cancelled", f.Raw)
	}
}

func TestASummaryNeedsAnAgent(t *testing.T) {
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	a := joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	_, nodes := treeOf(c, "s")
	a.Close(nil)
	flush(s)
	c.ok(`{"type":"load_session","sessionPath":"` + fileOf(c, "s") + `","sessionId":"t"}`)
	c.fails(`{"type":"navigate_tree","sessionId":"t","targetId":"`+nodes[0].EntryID+`","options":{"summarize":true}}`, "No model available for summarization")
}

func TestAChangeOfAgentIsWritten(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	joinAgent(t, h, core.Card{ID: "y"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"y"}`)
	c.ok(`{"type":"cycle_model","sessionId":"s"}`)
	_, nodes := treeOf(c, "s")
	if d := cmp.Diff([]string{"model_change coven/x ", "model_change coven/y ", "model_change coven/x "}, shownIn(nodes)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
