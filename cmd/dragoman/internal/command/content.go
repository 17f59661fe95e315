package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// maxContentBytes is the maximum of what a command reads of a file or of stdin, so that an endless one fails. What a
// request may have is a setting of the hub.
const maxContentBytes = 1 << 30

// fromStdin is the value that stands for stdin.
const fromStdin = "@-"

// contentOf returns the text of a command: its arguments, a file, or stdin.
func contentOf(args []string, in io.Reader) (string, error) {
	given := strings.Join(args, " ")
	switch {
	case len(args) == 0, given == "-":
		given = fromStdin
	case len(args) > 1:
		return asText(given, "the text")
	}
	return textOf(given, "@@ for a text that begins with @", in)
}

// contentBeside is contentOf for a command with a flag that reads stdin too, which has been given a value. Stdin is read
// once: where the flag reads it and there are no words, the text is empty.
func contentBeside(flag, value string, args []string, in io.Reader) (string, error) {
	if value != fromStdin {
		return contentOf(args, in)
	}
	switch given := strings.Join(args, " "); {
	case len(args) == 0:
		return "", nil
	case given == "-", given == fromStdin:
		return "", usagef("%s and --%s %s: stdin can be read once: write one of them on the command line, or name its file with @FILE", given, flag, fromStdin)
	}
	return contentOf(args, in)
}

// textOf returns a value as curl reads one: @FILE is what is in the file, @- what is read from stdin, @@ an @. instead
// is what errors advise to write where no file is meant.
func textOf(given, instead string, in io.Reader) (string, error) {
	name, at := strings.CutPrefix(given, "@")
	switch {
	case !at:
		return asText(given, "the text")
	case strings.HasPrefix(name, "@"):
		return asText(name, "the text")
	case name == "":
		return "", usagef("@ alone: write @FILE, @- for stdin, or %s", instead)
	case name == "-":
		return readText(in, "stdin")
	}
	path, err := config.ExpandHome(name)
	if err != nil {
		return "", usagef("@%s: %w", name, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", usagef("@%s: %w; name a file that you may read, or write %s", name, cause(err), instead)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return "", usagef("@%s is a directory: name a file in it, or write %s", name, instead)
	}
	return readText(f, "@"+name)
}

// jsonOf returns the JSON of a flag or an argument, which textOf reads.
func jsonOf(given, name string, in io.Reader) (json.RawMessage, error) {
	text, err := textOf(given, "the JSON itself", in)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", name, err)
	case !json.Valid([]byte(text)):
		err = usagef("%s is not JSON: write an object such as '{\"n\":1}', a text as '\"text\"', or @FILE", name)
	}
	return json.RawMessage(text), err
}

// readText reads a text to its end.
func readText(in io.Reader, from string) (string, error) {
	if isTerminal(in) {
		fmt.Fprintf(os.Stderr, "reading from the terminal: end with %s\n", endOfInput(runtime.GOOS))
	}
	b, err := io.ReadAll(io.LimitReader(in, maxContentBytes+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("reading %s: %w", from, cause(err))
	case len(b) > maxContentBytes:
		return "", usagef("%s has more than %s: say where it is instead (a path, a link)", from, config.FormatSize(maxContentBytes))
	}
	if b, err = edge.Text(b); err != nil {
		return "", usagef("%s: %w", from, err)
	}
	return asText(string(b), from)
}

// endOfInput is what a user types at a terminal to end the input, on an operating system.
func endOfInput(goos string) string {
	if goos == "windows" {
		return "Ctrl-Z and Enter"
	}
	return "Ctrl-D"
}

func asText(s, what string) (string, error) {
	if !utf8.ValidString(s) {
		return "", usagef("%s is not UTF-8: attach binary data with --file of dragoman ask", what)
	}
	return s, nil
}

// cause returns why a file cannot be read, without its path and the system call.
func cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}
