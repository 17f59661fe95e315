package credentials

import "os"

// keepOwner leaves a file as it is: a new file has the owner and the access control list that its
// directory gives it.
func keepOwner(string, *os.File) error { return nil }
