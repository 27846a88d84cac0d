//go:build !race

package transport_test

const detector = false
