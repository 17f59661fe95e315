package e2e

import (
	"flag"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// conversationsDir has the recorded conversations.
const conversationsDir = "../../../schemas/conversations"

var updateConversations = flag.Bool("update", false, "write what the hub sends into schemas/conversations")

func TestConversations(t *testing.T) {
	t.Parallel()
	for _, s := range readConversations(t) {
		name, _ := filepath.Rel(conversationsDir, s.path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txtar"), func(t *testing.T) {
			if *updateConversations {
				defer func() {
					if err := s.write(); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Test(t, func(t *testing.T) { runConversation(t, s, *updateConversations) })
		})
	}
}

func readConversations(t *testing.T) []*recording {
	t.Helper()
	var all []*recording
	err := filepath.WalkDir(conversationsDir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		s, err := readConversation(path)
		if err == nil {
			all = append(all, s)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
