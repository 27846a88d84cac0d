// Package arch holds the rules of this module as tests: who imports whom, how long a
// function may be, and that the pages and the notice are right. There is nothing to
// import here.
package arch
