package credentials

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// tokenKeys are the keys of a token in the file.
const tokenKeys = "principal, sha256 and optionally expires, operator, kind, roles and agents"

// ReadTokens reads the token file (the setting auth.tokens): a list below tokens, each with a
// principal, the SHA-256 of the token and what else the token says of its owner. Without a path
// there are no tokens. No error quotes the file, which may contain a token by mistake.
func ReadTokens(path string) ([]auth.Token, error) {
	if path == "" {
		return nil, nil
	}
	f := file{setting: "auth.tokens", path: path}
	d, err := f.readSecrets()
	if err != nil {
		return nil, err
	}
	items, ok := d.Values["tokens"].([]any)
	if !ok || len(d.Values) != 1 || len(items) == 0 {
		return nil, fmt.Errorf("auth.tokens: %s: want tokens: and below it a list of at least one, each with %s", path, tokenKeys)
	}
	var list []auth.Token
	for i, item := range items {
		line := max(1, d.Lines[fmt.Sprintf("tokens[%d]", i)]) // an alias has none
		one, err := readToken(item)
		if err == nil && slices.ContainsFunc(list, func(other auth.Token) bool { return other.Hash == one.Hash }) {
			err = errors.New("its hash is in the file twice: give everybody a token of their own")
		}
		if err != nil {
			f.failAt(line, "token %d: %w", i+1, err)
			continue
		}
		one.Line = line
		list = append(list, one)
	}
	if err := errors.Join(f.mistakes...); err != nil {
		return nil, err
	}
	return list, nil
}

// readToken reads one token of the list.
func readToken(item any) (t auth.Token, err error) {
	of, ok := item.(map[string]any)
	if !ok {
		return t, fmt.Errorf("want %s", tokenKeys)
	}
	for _, key := range slices.Sorted(maps.Keys(of)) {
		if err := readTokenMember(&t, key, of[key]); err != nil {
			return t, err
		}
	}
	if t.Principal == "" || t.Hash == (auth.Hash{}) {
		return t, errors.New("principal and sha256 are needed")
	}
	return t, nil
}

// readTokenMember reads what a token says under a key.
func readTokenMember(t *auth.Token, key string, value any) (err error) {
	switch text, isText := value.(string); key {
	case "principal":
		t.Principal = text
		return auth.CheckPrincipal(text)
	case "sha256":
		if t.Hash, err = auth.ParseHash(text); err != nil {
			return fmt.Errorf("sha256: %w", err)
		}
	case "operator":
		var ok bool
		if t.Operator, ok = value.(bool); !ok {
			return errors.New("operator: want true or false")
		}
	case "expires":
		t.Expires, err = readExpiry(value)
		return err
	case "kind":
		if !isText || t.Kind.UnmarshalText([]byte(text)) != nil || t.Kind == 0 {
			return fmt.Errorf("kind: want %s, %s or %s", core.KindPerson, core.KindAgent, core.KindService)
		}
	case "roles":
		if t.Roles, err = readNames(value, auth.CheckRoles); err != nil {
			return fmt.Errorf("roles: %w", err)
		}
	case "agents":
		if t.Agents, err = readNames(value, auth.CheckAgents); err != nil {
			return fmt.Errorf("agents: %w", err)
		}
	default:
		return fmt.Errorf("unknown key: want %s", tokenKeys)
	}
	return nil
}

// readExpiry reads when a token expires: a time of YAML, or one in quotes.
func readExpiry(value any) (time.Time, error) {
	at, isTime := value.(time.Time)
	if text, isText := value.(string); isText {
		var err error
		at, err = time.Parse(time.RFC3339, text)
		isTime = err == nil
	}
	if !isTime {
		return at, errors.New("expires: want a time such as 2030-01-31T12:00:00Z")
	}
	return at.UTC(), nil
}

// readNames reads a name, or a list of names, and checks them.
func readNames(value any, check func([]string) ([]string, error)) ([]string, error) {
	items, isList := value.([]any)
	if !isList {
		items = []any{value}
	}
	names := make([]string, len(items))
	for i, item := range items {
		var ok bool
		if names[i], ok = item.(string); !ok {
			return nil, errors.New(`want a list of texts, such as ["team-*", shout]`)
		}
	}
	return check(names)
}
