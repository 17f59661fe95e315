package credentials_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
)

func TestATokenIsAddedBelowTheOthersAndCommentsStay(t *testing.T) {
	for name, before := range map[string]string{
		"one":              "# ours\ntokens:\n- principal: a # the first\n  sha256: " + hashOfA + "\n# the end",
		"indented":         "tokens:\n    - {principal: a, sha256: " + hashOfA + "}\n\n\n",
		"with line breaks": "tokens:\r\n- principal: a\r\n  sha256: " + hashOfA + "\r\n",
		"none yet":         "",
	} {
		path := write(t, before)
		given := auth.Token{Principal: "bob", Hash: auth.HashOf("x"), Agents: []string{"*"}, Roles: []string{`"quoted" é`}}
		if err := credentials.AppendToken(path, given); err != nil {
			t.Errorf("%s: got %v, want it added", name, err)
			continue
		}
		after, err := os.ReadFile(path)
		if err != nil || !strings.HasPrefix(string(after), strings.TrimRight(before, "\r\n")) {
			t.Errorf("%s: got %s and %v, want what was there at its beginning", name, after, err)
		}
		list, err := credentials.ReadTokens(path)
		if err != nil || list[len(list)-1].Principal != "bob" || list[len(list)-1].Roles[0] != given.Roles[0] {
			t.Errorf("%s: got %+v and %v, want the token at the end", name, list, err)
		}
		if left, _ := filepath.Glob(filepath.Dir(path) + "/*.new"); len(left) > 0 {
			t.Errorf("%s: got the file %v left, want none", name, left)
		}
	}
}

func TestAFileThatATokenCannotBeAddedToStaysAsItIs(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"in one line":      {"tokens: [{principal: a, sha256: " + hashOfA + "}]\n", "with one item in each line"},
		"an alias":         {"tokens: &all [{principal: a, sha256: " + hashOfA + "}]\n", "with one item in each line"},
		"a mistake":        {"tokens:\n- principal: a\n", "principal and sha256 are needed"},
		"another document": {"tokens:\n- {principal: a, sha256: " + hashOfA + "}\n...\n", "add it by hand"},
		"the same token":   {"tokens:\n- {principal: a, sha256: " + hashOfA + "}\n", "add it by hand"},
	} {
		path := write(t, c.before)
		hash := auth.HashOf("x")
		if name == "the same token" {
			hash, _ = auth.ParseHash(hashOfA)
		}
		err := credentials.AppendToken(path, auth.Token{Principal: "bob", Hash: hash})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want %q and the file", name, err, c.want)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != c.before {
			t.Errorf("%s: got %s and %v, want it unchanged", name, after, err)
		}
	}
}

func TestTwoCommandsDoNotAddATokenAtTheSameTime(t *testing.T) {
	path := write(t, "tokens:\n- {principal: a, sha256: "+hashOfA+"}\n")
	if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := credentials.AppendToken(path, auth.Token{Principal: "bob", Hash: auth.HashOf("x")}); err == nil || !strings.Contains(err.Error(), "remove the file if none runs") {
		t.Errorf("got %v, want that another command adds one", err)
	}
	if _, err := os.Stat(path + ".new"); err != nil {
		t.Errorf("got %v, want the file of the other command there still", err)
	}
}

func TestALinkToATokenFileStaysALink(t *testing.T) {
	path := write(t, "tokens:\n- {principal: a, sha256: "+hashOfA+"}\n")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := credentials.AppendToken(link, auth.Token{Principal: "bob", Hash: auth.HashOf("x")}); err != nil {
		t.Fatal(err)
	}
	if list, err := credentials.ReadTokens(path); err != nil || len(list) != 2 {
		t.Errorf("got %v and %v, want the token in the file that the link names", list, err)
	}
}
