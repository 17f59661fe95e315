package auth_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/auth"
)

// someKey is a public key of which nobody has the private part.
const someKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPMj3aX5y2kR6fTyJ5mVqkqpW5Y3w6a6JmZbZLhcv0M"

func TestKeysAreReadFromAuthorizedKeysLines(t *testing.T) {
	ann, bob := newEd25519(t), newEd25519(t)
	keys, err := auth.ReadKeys([]byte("# people\n\n principal=\"ana\" " + ann.line + " ana@home\r\n" +
		`PRINCIPAL="bob smith",agents="shout, team-*",kind="person" ` + bob.line))
	if err != nil || len(keys) != 2 || keys[0].Principal != "ana" || keys[1].Principal != "bob smith" || strings.Join(keys[1].Agents, "|") != "shout|team-*" || keys[1].Kind.String() != "person" {
		t.Errorf("got %+v, %v; want ana and bob smith, with two agents", keys, err)
	}
	if len(keys) == 2 && keys[0].Fingerprint.String() == keys[1].Fingerprint.String() {
		t.Error("got one fingerprint for two keys")
	}
}

func TestALineThatCannotBeUsedIsNamedButNotQuoted(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"a private key":       {"-----BEGIN OPENSSH PRIVATE KEY-----", "this is a private key"},
		"no key":              {`principal="ana" hunter2hunter2`, "want principal="},
		"text":                {"hunter2hunter2", "want principal="},
		"no principal":        {someKey, `begin it with principal="NAME"`},
		"an empty principal":  {`principal="" ` + someKey, "principal: want a name of 1 to 256 bytes"},
		"an address":          {`principal="capability:x" ` + someKey, "principal: want a name of 1 to 256 bytes"},
		"no quotes":           {`principal=hunter2hunter2 ` + someKey, "NAME=\"VALUE\""},
		"an option of sshd":   {`principal="ana",from="hunter2hunter2" ` + someKey, "unknown option"},
		"twice the principal": {`principal="ana",principal="hunter2hunter2" ` + someKey, "given twice"},
		"a bad agent":         {`principal="ana",agents="domain:x" ` + someKey, "agents: want ids of agents"},
		"an empty agent":      {`principal="ana",agents="a,,b" ` + someKey, "agents: want ids of agents"},
		"a bad role":          {`principal="ana",roles="" ` + someKey, "roles: want names"},
		"a bad kind":          {`principal="ana",kind="hunter2hunter2" ` + someKey, "kind: want person, agent or service"},
		"no kind":             {`principal="ana",kind="" ` + someKey, "kind: want person, agent or service"},
		"a slow key":          {`principal="ana" ` + newECDSA(t, p521).line, "use ed25519"},
	} {
		_, err := auth.ReadKeys([]byte("# first\n" + c.line + "\n"))
		if err == nil || !strings.HasPrefix(err.Error(), "line 2: ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "AAAAC3") {
			t.Errorf("%s: got %v, want line 2 and %q, nothing quoted", name, err, c.want)
		}
	}
	_, err := auth.ReadKeys([]byte("principal=\"a\" " + someKey + "\n\nprincipal=\"b\" " + someKey))
	if err == nil || !strings.Contains(err.Error(), "line 3: its key is in line 1 too") {
		t.Errorf("a key twice: got %v, want both lines", err)
	}
}
