package supervisor_test

import "syscall"

// alive reports whether there is a process with an id that has not ended.
func alive(pid int) bool {
	p, err := syscall.OpenProcess(syscall.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return false
	}
	defer syscall.CloseHandle(p) //nolint:errcheck // it was only asked
	ended, err := syscall.WaitForSingleObject(p, 0)
	return err == nil && ended == syscall.WAIT_TIMEOUT
}
