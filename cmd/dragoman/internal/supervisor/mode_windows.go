package supervisor

import "io/fs"

// Allows returns false: Windows has no modes. Who may do what with a file is in its access control
// list, which nothing here reads.
func Allows(string, fs.FileMode) (mode fs.FileMode, is bool) { return 0, false }
