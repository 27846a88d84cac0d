// Package tiktoken counts the tokens of a text exactly as OpenAI's models do.
//
// It promises five things. The count is exact on every input, valid UTF-8 or not:
// it is the one of github.com/pkoukk/tiktoken-go, the reference, which the tests
// compare with. Nothing is downloaded: the vocabularies are in the binary, and the
// package imports nothing that could reach a network. Time is linear in the length
// of every text. A vocabulary is built once in a process, when it is first used,
// and not at all if it is not. And no call fails: text is counted even if the
// model is unknown or its vocabulary is missing. [Counter.Fallbacks] says how
// often.
//
// It does not encode: it has no token numbers to give, and nothing decodes. It
// never takes text for a special token. It knows OpenAI's vocabularies only; for
// other vendors' models, whose tokenizers are not published, it counts with
// o200k_base and says so through Fallbacks.
//
//	c := tiktoken.New(tiktoken.Options{})
//	n := c.CountString("gpt-4o", "Hello, world!")
//
// [Counter.Count] takes text. [Counter.CountJSON] takes the inside of a JSON
// string as it stands in a request body. [Counter.Chat] takes a chat and adds
// its published overhead. A fast estimate, as package estimate makes it, is
// enough for most limits; this package is for where the number has to be right.
//
// # Encodings
//
// o200k_base, cl100k_base, p50k_base and r50k_base, all four from the module
// github.com/pkoukk/tiktoken-go-loader, where they add 7 MB to a program. What has
// the same ranks and pattern as one of these and differs in special tokens only
// is counted with it: o200k_harmony, p50k_edit and gpt2.
//
// tiktoken-go itself is used in tests alone. It is exact, but it merges in time
// quadratic in the piece: 100 kB of one letter take it several seconds. It keeps
// 24 MB for o200k_base. Its loader also fills a Go map on each build; here the
// embedded files are read line by line into a table.
//
// # Where this differs from OpenAI's own library
//
// It follows the reference. Letters are those of the Unicode version of the Go
// toolchain, 15.0 in Go 1.26; OpenAI's library goes by the version of its
// regular expressions, so that letters assigned lately may be split elsewhere.
// There, but not here, a contraction may end in U+017F, the long s. The npm
// package tiktoken 1.0.22 is OpenAI's library in WebAssembly. It counted the same
// on 3,591 texts of the kinds the tests use, in o200k_base, cl100k_base and
// r50k_base.
//
// # Cost
//
// Measured with Go 1.26 on two busy cores, the best of several runs; trust the
// ratios more than the speeds. In MB/s, and allocations for 100 kB:
//
//	100 kB                Count                       tiktoken-go
//	                      o200k_base  cl100k_base     o200k_base  cl100k_base
//	English                86          61   0 allocs     3.3         4.2   129,000 allocs
//	Go source              78          53   0            3.2         3.5   151,000
//	JSON, logs, base64     43          45   0            1.7         2.6   271,000
//	Russian                24          18   0            4.5         5.1    65,000
//	Chinese                14          18   0            3.9         4.7    31,000
//	a sentence            1.0 µs            0             40 µs               104
//
//	go test ./estimate/tiktoken -run xxx -bench 'Count|Short|JSON' -benchmem
//
// A run that is one piece is counted as fast at 1 MB as at 64 kB. The speeds are 27
// MB/s for one letter, 23 for spaces, 13 for Chinese without punctuation, 19 for
// emoji, 32 for combining marks and 12 for random letters. The slowest input known
// is invalid UTF-8, 6 MB/s, as each byte stands for three.
//
//	go test ./estimate/tiktoken -run xxx -bench LongRuns
//
// Memory and time to build, once in a process:
//
//	o200k_base     5.0 MB kept    8.0 MB allocated    27 ms
//	cl100k_base    2.6 MB         4.0 MB              10 ms
//	p50k_base      1.4 MB         2.2 MB               6 ms
//	r50k_base      1.4 MB         2.1 MB               6 ms
//
//	go test ./estimate/tiktoken -run xxx -bench Build -benchmem
//
// A count in progress uses about 300 kB of scratch memory at most, pooled. It uses
// more if a single piece of invalid UTF-8 or of escaped JSON is longer than that.
// A long piece is merged in windows. If they did not agree, the count would use
// more memory and take longer by the logarithm of the piece. No such piece is
// known.
package tiktoken
