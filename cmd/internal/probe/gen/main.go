// Gen writes docs/providers.md. Run it with go generate in cmd/internal/probe.
package main

import (
	"fmt"
	"os"

	"github.com/tripmeter/tripmeter/cmd/internal/probe"
)

func main() {
	recordings, err := os.ReadFile("../../../headers/testdata/headers.json")
	if err == nil {
		var page []byte
		if page, err = probe.Providers(recordings); err == nil {
			err = os.WriteFile("../../../docs/providers.md", page, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}
