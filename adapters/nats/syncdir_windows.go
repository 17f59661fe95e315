package nats

// syncDir does nothing: Windows cannot write a directory alone to the disk. NTFS keeps a journal of
// its names, which are whole after a loss of power but may be those from before a rename.
func syncDir(string) error { return nil }
