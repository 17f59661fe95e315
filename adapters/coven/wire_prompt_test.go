package coven_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestARequestOfTextAndFilesIsSentVerbatim(t *testing.T) {
	got, folded := wire.PromptOf("task-1", core.Principal{ID: "alice"}, core.Request{
		Thread: "th", Content: "  What now?\n", Attachments: []core.File{{Name: "a.txt", MediaType: "text/plain", Data: []byte("x")}},
	})
	want := &pb.SendMessage{
		RequestId: "task-1", ThreadId: "th", Sender: "alice", Content: "  What now?\n",
		Attachments: []*pb.FileAttachment{{Filename: "a.txt", MimeType: "text/plain", Data: []byte("x")}},
	}
	if diff := cmp.Diff(want, got.GetSendMessage(), protocmp.Transform()); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if folded {
		t.Error("folded: got true, want false")
	}
}

func TestARequestWithoutAThreadGetsItsOwn(t *testing.T) {
	got, _ := wire.PromptOf("task-1", core.Principal{}, core.Request{Content: "x"})
	if got.GetSendMessage().GetThreadId() != "task-1" {
		t.Errorf("thread: got %q, want %q", got.GetSendMessage().GetThreadId(), "task-1")
	}
}

func TestPartsWithoutAFieldAreFoldedIntoTheContent(t *testing.T) {
	got, folded := wire.PromptOf("t", core.Principal{}, core.Request{
		Content: "Who is free on Friday?", Data: json.RawMessage(`{"week":12}`), Context: json.RawMessage(`{"city":"Graz"}`),
		History: []core.Turn{{Role: core.RoleUser, Text: "hi"}, {Role: core.RoleAssistant, Agent: "b", Text: "hello"}},
		Domain:  "family.calendar", MaxTokens: 100,
	})
	want := "Who is free on Friday?\n\n" +
		"Data:\n```json\n{\"week\":12}\n```\n\n" +
		"Context:\n```json\n{\"city\":\"Graz\"}\n```\n\n" +
		"Earlier in this conversation:\n```json\n[{\"role\":\"user\",\"text\":\"hi\"},{\"role\":\"assistant\",\"agent\":\"b\",\"text\":\"hello\"}]\n```\n\n" +
		"Domain: family.calendar\n\n" +
		"Answer in at most 100 tokens."
	if diff := cmp.Diff(want, got.GetSendMessage().GetContent()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
	if !folded {
		t.Error("folded: got false, want true")
	}
}

func TestANoticeSaysThatNoAnswerIsExpected(t *testing.T) {
	got, _ := wire.PromptOf("t", core.Principal{}, core.Request{
		Intent: core.IntentNotify,
		Notice: &core.Notice{Topic: "build.done", Data: json.RawMessage(`{"ok":true}`), Importance: core.ImportanceHigh},
	})
	want := "Notice (no answer is expected): build.done (importance: high)\n\nData:\n```json\n{\"ok\":true}\n```"
	if diff := cmp.Diff(want, got.GetSendMessage().GetContent()); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestAFenceIsLongerThanAnyInTheData(t *testing.T) {
	got := core.Fenced("Data", "json", []byte("\"a ```` b\""))
	want := "Data:\n`````json\n\"a ```` b\"\n`````"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
