// Package browser looks at the live page with a real browser, Chromium without a
// window, as a test. There is nothing to import here. It is a module of its own
// so that nobody needs a browser to test the others.
//
// The browser is found in PATH as chromium, chromium-browser or google-chrome,
// or named by TRIPMETER_CHROMIUM. Without one the tests fail.
//
//	go test .                          the checks
//	go test . -screenshots ../../docs  and the pictures of the docs, in two minutes
package browser
