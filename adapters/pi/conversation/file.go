package conversation

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"time"
)

// fileName is the path below the session directory of a new conversation (facts,
// section 7.3).
func fileName(t *Tree) string {
	folder := strings.NewReplacer("/", "-", `\`, "-", ":", "-", "\x00", "-").Replace(strings.TrimPrefix(t.Header.Cwd, "/"))
	if len(folder) > mostFolder { // which the real program cannot write
		sum := sha256.Sum256([]byte(folder))
		folder = strings.ToValidUTF8(folder[:mostFolder-2*len(sum)], "") + hex.EncodeToString(sum[:])
	}
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(t.Header.Timestamp)
	return filepath.Join("--"+folder+"--", stamp+"_"+t.Header.ID+".jsonl")
}

// mostFolder is how many bytes of the name of a directory are for that of another.
const mostFolder = 250

// fileTime reads the time in the name of a session file.
func fileTime(name string) (time.Time, bool) {
	stamp, _, _ := strings.Cut(name, "_")
	at, err := time.Parse("2006-01-02T15-04-05-000Z", stamp)
	return at, err == nil
}
