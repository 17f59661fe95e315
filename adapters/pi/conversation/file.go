package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"
)

// fileName returns the path of a new conversation below the session directory (facts,
// section 7.3).
func fileName(t *Tree) string {
	folder := strings.NewReplacer("/", "-", `\`, "-", ":", "-", "\x00", "-").Replace(strings.TrimPrefix(t.Header.Cwd, "/"))
	if len(folder) > maxFolderBytes { // the real program cannot write these
		sum := sha256.Sum256([]byte(folder))
		folder = strings.ToValidUTF8(folder[:maxFolderBytes-2*len(sum)], "") + hex.EncodeToString(sum[:])
	}
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(t.Header.Timestamp)
	return filepath.Join("--"+folder+"--", stamp+"_"+t.Header.ID+".jsonl")
}

// maxFolderBytes bounds the part of a directory name that names the working directory.
const maxFolderBytes = 250

// fileTime returns the time in the name of a session file.
func fileTime(name string) (time.Time, bool) {
	stamp, _, _ := strings.Cut(name, "_")
	at, err := time.Parse("2006-01-02T15-04-05-000Z", stamp)
	return at, err == nil
}
