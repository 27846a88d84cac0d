//go:build !windows && (!unix || aix || solaris)

package batch

import "os"

// lock knows no lock on this system.
func lock(*os.File) error { return errNoLocks }
