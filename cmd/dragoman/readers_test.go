package main_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readers is in how many files a package reads JSON with encoding/json, and what they read.
// Everything else from outside is read by core/strictjson, once.
var readers = map[string]struct {
	most int
	what string
}{
	"adapters/acp/wire":          {1, "what can be read of an envelope that is broken"},
	"adapters/coven/wire":        {3, "what the hub has written or read before, in binary frames"},
	"adapters/nats":              {9, "the files of the journal, who has taken one over, and what NATS servers say"},
	"adapters/parallax":          {1, "numbers of a heartbeat"},
	"adapters/parallax/gateway":  {1, "frames on their way out"},
	"adapters/parallax/registry": {1, "metadata, on its way out"},
	"adapters/parallax/wire":     {5, "what goes out, what is signed, and the id of a message that is broken"},
	"adapters/peer":              {4, "what another hub of the cluster has written"},
	"adapters/pi":                {4, "cards, what the hub has told its own client, a frame that is refused, and what another hub passes on"},
	"adapters/pi/pitest":         {2, "what the hub has told a test"},
	"adapters/pi/command":        {2, "records of commands and their outcomes, which the hub has written"},
	"adapters/pi/conversation":   {4, "entries of a session file, which were read"},
	"adapters/pi/render":         {1, "messages of a conversation, on their way out"},
	"adapters/pi/sessionfile":    {2, "lines of a session file, which were read"},
	"core/cluster/remote":        {1, "what another hub of the cluster has written"},
	"core/rpc":                   {2, "what another hub of the cluster has written"},
	"core":                       {3, "the JSON form of the vocabulary"},
	"core/hub":                   {4, "what a session says that does not read strictly, and what another hub of the cluster has written"},
	"core/jsonrpc":               {1, "the ends of a message that is too large"},
	"core/pack":                  {1, "the output of a pack's tool"},
	"core/strictjson":            {1, "types that the reader leaves to encoding/json"},
	"schemas":                    {2, "what the library of JSON Schema wants, and examples in the program"},
}

func TestRepositoryReadsJSONFromOutsideInOnePlace(t *testing.T) {
	call := regexp.MustCompile(`\bjson\.(Unmarshal|NewDecoder|Valid)\(`)
	found := map[string][]string{} // files, by package
	for _, tree := range []string{"adapters", "core", "schemas"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err == nil && call.Match(text) {
				name, _ := filepath.Rel(root, filepath.Dir(path))
				found[filepath.ToSlash(name)] = append(found[filepath.ToSlash(name)], filepath.Base(path))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, files := range found {
		if name == "core/coretest" || strings.HasPrefix(name, "core/coretest/") {
			continue
		}
		if slices.Sort(files); len(files) > readers[name].most {
			t.Errorf("%s reads JSON with encoding/json in %v, want at most %d files (%s): read input from outside with core/strictjson",
				name, files, readers[name].most, readers[name].what)
		}
	}
}
