// Tripmeter keeps programs in any language within the rate limits of LLM
// providers:
//
//	tripmeter batch   sends a file of requests, and goes on where it stopped
//	tripmeter serve   is a gateway where calls wait instead of being refused
//	tripmeter probe   says what a provider's answers show of its limits
//
// Each explains its flags with -h.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/tripmeter/tripmeter/cmd/internal/batch"
	"github.com/tripmeter/tripmeter/cmd/internal/probe"
	"github.com/tripmeter/tripmeter/cmd/internal/serve"
)

const usage = `tripmeter keeps programs within the rate limits of LLM providers.

  tripmeter batch   send a file of requests; go on where it stopped
  tripmeter serve   a gateway where calls wait instead of being refused
  tripmeter probe   what a provider's answers show of its limits
  tripmeter version

"tripmeter batch -h" explains the flags of batch, and so on.
`

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// Writing to a terminal or a pipe that is gone is an error, not the end.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(run(os.Args[1:], signals, os.Stdin, os.Stdout, os.Stderr))
}

func run(args []string, signals chan os.Signal, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	switch args[0] {
	case "batch":
		return batch.Run(args[1:], os.Getenv, signals, stdin, stdout, stderr)
	case "serve":
		return serve.Run(args[1:], os.Getenv, signals, stderr)
	case "probe":
		signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
		return probe.Run(args[1:], os.Getenv, stdin, stdout, stderr)
	case "version", "-version", "--version":
		version := "(devel)"
		if i, ok := debug.ReadBuildInfo(); ok && i.Main.Version != "" {
			version = i.Main.Version
		}
		fmt.Fprintln(stdout, "tripmeter", version)
		return 0
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "tripmeter: there is no command %q\n\n%s", args[0], usage)
	return 2
}
