package e2e

import (
	"flag"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
)

// stories is where the conversations stand that this test plays.
const stories = "../../../schemas/conversations"

var updateStories = flag.Bool("update", false, "write what the hub says into the stories of schemas/conversations")

func TestEveryConversationGoesAsItIsTold(t *testing.T) {
	for _, s := range readStories(t) {
		name, _ := filepath.Rel(stories, s.path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txtar"), func(t *testing.T) {
			if *updateStories {
				defer func() {
					if err := s.write(); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Test(t, func(t *testing.T) { playStory(t, s, *updateStories) })
		})
	}
}

func readStories(t *testing.T) []*story {
	t.Helper()
	var all []*story
	err := filepath.WalkDir(stories, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		s, err := readStory(path)
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
