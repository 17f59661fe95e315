//go:build unix

package conversation_test

import (
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
)

func TestAPipeInPlaceOfAFileDoesNotBlock(t *testing.T) {
	dir := t.TempDir()
	at := conversation.Place{Root: dir, Name: "x.jsonl"}
	if err := syscall.Mkfifo(at.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := conversation.NewStore(conversation.StoreOptions{Dir: dir, MaxBytes: 1 << 20})
	if _, problem := s.Read("", at.Path()); problem != conversation.NotASession {
		t.Errorf("read: got %q, want %q", problem, conversation.NotASession)
	}
	n := conversation.New("id", "s", "/", "").AppendMessage(userMessage("x"))
	if err := appendTo(at, n); err == nil {
		t.Error("append: got no error, want one")
	}
}
