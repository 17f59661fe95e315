package credentials

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// NewToken returns a random token of 256 bits.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails
	return core.TokenPrefix + hex.EncodeToString(b)
}

// TokenEntry returns the entry of a token in the token file: an item of a list in YAML, with a
// line break after each line.
func TokenEntry(t auth.Token) string {
	var b strings.Builder
	line := func(key, value string) { fmt.Fprintf(&b, "  %s: %s\n", key, value) }
	fmt.Fprintf(&b, "- principal: %s\n", quoted(t.Principal))
	line("sha256", strconv.Quote(hex.EncodeToString(t.Hash[:])))
	if t.Operator {
		line("operator", "true")
	}
	if t.Kind != 0 {
		line("kind", t.Kind.String())
	}
	for _, list := range []struct {
		key   string
		names []string
	}{{"roles", t.Roles}, {"agents", t.Agents}} {
		if len(list.names) > 0 {
			all := make([]string, len(list.names))
			for i, name := range list.names {
				all[i] = quoted(name)
			}
			line(list.key, "["+strings.Join(all, ", ")+"]")
		}
	}
	if !t.Expires.IsZero() {
		line("expires", t.Expires.UTC().Format(time.RFC3339))
	}
	return b.String()
}

// quoted writes a text that YAML reads as that text. JSON's quotes mean the same in YAML.
func quoted(text string) string { return strconv.Quote(text) }

// AppendToken adds a token to the end of a token file, or makes one that only its owner may
// read. What the file has stays as it is, comments too. The file is replaced at once: a hub that
// reads it meanwhile reads it without the token or with it. After an error it is unchanged.
func AppendToken(path string, t auth.Token) error {
	target, err := filepath.EvalSymlinks(path)
	isNew := errors.Is(err, fs.ErrNotExist)
	if isNew {
		target, err = path, nil
	}
	var before []byte
	if err == nil && !isNew {
		before, err = readAtMost(target, maxFileBytes, yamlFile)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	firstLine := 0
	if len(bytes.TrimSpace(before)) > 0 {
		tokens, err := ReadTokens(target)
		if err != nil {
			return err
		}
		firstLine = tokens[0].Line
	}
	after, err := withToken(before, firstLine, t)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	// The name is the lock against another that appends at the same time.
	temp := target + ".new"
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another command is adding a token, or was interrupted: remove the file if none runs", temp)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = os.Remove(temp) }() // it is gone if all went well
	_, err = out.Write(after)
	if err == nil {
		err = keepOwner(target, out)
	}
	err = errors.Join(err, out.Sync(), out.Close())
	if err == nil {
		err = sameFile(target, before)
	}
	if err == nil {
		err = endsWith(temp, t.Hash)
	}
	if err == nil {
		err = os.Rename(temp, target)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be extended: %w", path, err)
	}
	return nil
}

// withToken returns the text of a token file with one more token, below the one that begins in a line; 0 if there is none.
func withToken(before []byte, firstLine int, t auth.Token) ([]byte, error) {
	if firstLine == 0 {
		return []byte("# Who may connect. 'dragoman token new' makes tokens; only their hashes are here.\ntokens:\n" + TokenEntry(t)), nil
	}
	first := strings.Split(string(before), "\n")[firstLine-1]
	indent, _, inList := strings.Cut(first, "-")
	if !inList || strings.Trim(indent, " ") != "" {
		return nil, errors.New("want tokens: and below it a list with one item in each line, each beginning with -")
	}
	text := append(bytes.Clone(bytes.TrimRight(before, " \t\r\n")), '\n')
	for line := range strings.Lines(TokenEntry(t)) {
		text = append(text, indent+line...)
	}
	return text, nil
}

// endsWith returns an error unless the last token of a file has the hash.
func endsWith(path string, hash auth.Hash) error {
	all, err := ReadTokens(path)
	if err != nil || len(all) == 0 || all[len(all)-1].Hash != hash {
		return errors.New("an entry at its end would not be below tokens: add it by hand, without --file")
	}
	return nil
}

// sameFile returns an error if the file no longer has the content: an editor wrote it meanwhile.
func sameFile(path string, content []byte) error {
	now, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		now, err = nil, nil
	}
	if err == nil && !bytes.Equal(now, content) {
		err = errors.New("it was changed meanwhile: try again")
	}
	return err
}
