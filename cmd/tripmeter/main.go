// Tripmeter keeps programs within the rate limits of LLM providers:
//
//	tripmeter batch   sends a file of requests
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tripmeter/tripmeter/cmd/internal/batch"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	signal.Ignore(syscall.SIGPIPE)
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage")
		os.Exit(2)
	}
	os.Exit(batch.Run(os.Args[2:], os.Getenv, signals, os.Stdin, os.Stdout, os.Stderr))
}
