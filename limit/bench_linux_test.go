package limit

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime is the processor time of this thread, which other programs on the
// machine do not lengthen as they do wall time.
func threadTime() time.Duration {
	const threadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
