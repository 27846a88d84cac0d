package batch

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes f for this process until it is closed: one byte far behind the
// end, so that others may read.
func lock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1 << 30}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errInUse
	}
	return err
}
