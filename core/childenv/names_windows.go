package childenv

import "strings"

// System are the variables without which programs of this system do not work: where Windows and its
// programs are, which files are programs, and where each user has files.
var System = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES",
	"PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// Same reports whether two names are those of one variable: Path is PATH.
func Same(a, b string) bool { return strings.EqualFold(a, b) }
