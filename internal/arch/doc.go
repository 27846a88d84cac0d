// Package arch holds the import rules of this module, as a test. There is
// nothing to import here.
package arch
