package redislimit

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"regexp"
	"strings"
)

//go:embed ledger.lua
var source string

// A Script is a Lua script with its name on the server.
type Script struct {
	Source string
	SHA1   string // of Source, in hexadecimal
}

// ledger is the script with its constants put in and its comments left out: Lua
// looks a name up at every use, and the server hashes every byte of a new script.
var ledger = newScript(source)

var (
	constants = regexp.MustCompile(`(?m)^local ((?:[A-Z][A-Z0-9]*,? ?)+)=\s+([0-9, ]+)(?: --.*)?$`)
	comment   = regexp.MustCompile(`(?m)(^|\s+)--.*$`)
	word      = regexp.MustCompile(`'[^']*'|\b[A-Z][A-Z0-9]*\b`)
	blank     = regexp.MustCompile(`\n\s*\n+`)
)

func newScript(text string) *Script {
	values := map[string]string{}
	for _, m := range constants.FindAllStringSubmatch(text, -1) {
		names, numbers := strings.Split(m[1], ","), strings.Split(m[2], ",")
		for i, name := range names {
			values[strings.TrimSpace(name)] = strings.TrimSpace(numbers[i])
		}
	}
	text = constants.ReplaceAllString(text, "")
	text = comment.ReplaceAllString(text, "")
	text = word.ReplaceAllStringFunc(text, func(w string) string {
		if v, ok := values[w]; ok {
			return v
		}
		return w
	})
	text = blank.ReplaceAllString(text, "\n")
	sum := sha1.Sum([]byte(text))
	return &Script{Source: text, SHA1: hex.EncodeToString(sum[:])}
}

// A Runner runs a script on the server: it is all that this package needs of a
// client. Packages goredis and rueidis make one of the client that a program has.
//
// Run sends EVALSHA, and EVAL if the server answers NOSCRIPT. It may send a call
// again on its own: the script does nothing for a call that it has decided, and
// gives the same answer. The answer is one bulk string. Run must return when ctx
// ends, and may be used by any number of goroutines.
type Runner interface {
	Run(ctx context.Context, s *Script, keys, args []string) (string, error)
}

// A Listener is a [Runner] that can also listen to a channel. With it a process
// hears at once that its turn came; without it, it has to ask, at the latest
// after [Options.Refresh].
//
// Listen calls heard for each message until ctx ends or the connection is lost,
// and returns why. It calls ready, once, when it listens.
type Listener interface {
	Runner
	Listen(ctx context.Context, channel string, ready func(), heard func(message string)) error
}
