package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
)

// inBash loads the completion of the program, and prints what completes each line of its arguments. The words of a line
// are split as readline splits them: the break characters are words of their own. Distributions bring along the
// function that puts words with colons together again, as the package bash-completion; to install that takes longer
// than the test, so where it is not, the test has its own.
const inBash = `
if [ -r /usr/share/bash-completion/bash_completion ]; then
	. /usr/share/bash-completion/bash_completion
else
	_get_comp_words_by_ref() {
		words=() cword=-1
		local joins= word
		for word in "${COMP_WORDS[@]}"; do
			case $word in
			: | =) words[cword]+=$word joins=1 ;;
			*) if [ "$joins" ]; then words[cword]+=$word; else words[++cword]=$word; fi; joins= ;;
			esac
		done
		cur=${words[cword]} prev=${words[cword - 1]}
	}
	__ltrim_colon_completions() { :; } # no completion of the test has a colon
fi
. <(dragoman completion bash)
compopt() { :; } # it is for a shell somebody types in
for line in "$@"; do
	COMP_LINE=$line COMP_POINT=${#line} COMP_TYPE=9 COMP_KEY=9 COMPREPLY=()
	read -r -a COMP_WORDS <<<"$(sed 's/[:=@]/ & /g' <<<"$line")"
	case $line in *" ") COMP_WORDS+=("") ;; esac
	COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
	__start_dragoman dragoman
	echo "$line> ${COMPREPLY[*]}"
done
`

// The completion works in bash, not only in what the program prints for it.
func TestBashCompletesCommandLines(t *testing.T) {
	needs(t, "bash", "sed")
	dir := t.TempDir()
	h := newTestHub(t, nil)
	h.startAgent(t, acp.Dialect, "bell", 1)
	h.startAgent(t, acp.Dialect, "belfry", 1)
	h.startAgent(t, acp.Dialect, "bob", 1)
	asked := h.delegate(t, "bob", "say "+h.key())

	bin := program(t)
	if err := os.Symlink(bin.Path, filepath.Join(dir, "dragoman")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "--norc", "-c", inBash, "bash",
		"dragoman ask be", "dragoman ask bo", "dragoman agent --dialect a", "dragoman tail "+asked[:10], "dragoman ask --hub "+h.url()+" bo", "dragoman ask --hub http://127.0.0.1:1 b")
	cmd.Env = append(slices.Clone(bin.Env), "PATH="+dir+":"+os.Getenv("PATH"), "DRAGOMAN_HUB="+h.url())
	out, err := cmd.CombinedOutput()
	want := strings.Join([]string{
		"dragoman ask be> belfry bell", "dragoman ask bo> bob", "dragoman agent --dialect a> acp", "dragoman tail " + asked[:10] + "> " + asked,
		"dragoman ask --hub " + h.url() + " bo> bob", "dragoman ask --hub http://127.0.0.1:1 b> ", "",
	}, "\n")
	if err != nil || string(out) != want {
		t.Errorf("got %v and\n%s\nwant\n%s", err, out, want)
	}
}
