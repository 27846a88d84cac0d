//go:build unix && !aix && !solaris

package batch

import (
	"errors"
	"os"
	"syscall"
)

// lock takes f for this process until it is closed. The system gives it back
// when the process ends, however it ends.
func lock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return errInUse
	case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.ENOLCK):
		return errNoLocks
	}
	return err
}
