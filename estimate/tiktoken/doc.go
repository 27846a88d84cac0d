// Package tiktoken counts the tokens of a text exactly as OpenAI's models do.
//
// It promises five things. The count is exact on every input, valid UTF-8 or not:
// it is the one of github.com/pkoukk/tiktoken-go, the reference, which the tests
// compare with. Nothing is downloaded: the vocabularies are in the binary, and the
// package imports nothing that could reach a network. Time is linear in the text,
// whatever the text. A vocabulary is built once in a process, when it is first
// used, and not at all if it is not. And no call fails: what is not known is
// counted all the same, and [Counter.Fallbacks] says how often.
//
// It does not encode: it has no token numbers to give, and nothing decodes. It
// never takes text for a special token. It knows OpenAI's vocabularies only; for
// other vendors' models, whose tokenizers are not published, it counts with
// o200k_base and says so through Fallbacks.
//
//	c := tiktoken.New(tiktoken.Options{})
//	n := c.CountString("gpt-4o", "Hello, world!")
//
// [Counter.Count] takes text, [Counter.CountJSON] the inside of a JSON string as
// it stands in a request body, and [Counter.Chat] a chat with its published
// overhead. A fast estimate, as package estimate makes it, is enough for most
// limits; this package is for where the number has to be right.
//
// # Encodings
//
// o200k_base, cl100k_base, p50k_base and r50k_base, all four from the module
// github.com/pkoukk/tiktoken-go-loader, where they add 7 MB to a program. What has
// the same ranks and pattern as one of these and differs in special tokens only
// is counted with it: o200k_harmony, p50k_edit and gpt2.
//
// tiktoken-go itself is used in tests alone. It is exact, but it merges in time
// quadratic in the piece, 100 kB of one letter take it several seconds, and it
// keeps 24 MB for o200k_base. Its loader also fills a Go map on each build; here
// the embedded files are read line by line into a table.
//
// # Where this differs from OpenAI's own library
//
// It follows the reference. Letters are those of the Unicode version of the Go
// toolchain, 15.0 in Go 1.26; OpenAI's library goes by the version of its
// regular expressions, so that letters assigned lately may be split elsewhere.
// There, but not here, a contraction may end in U+017F, the long s. On 3,591
// texts of the kinds the tests use, in o200k_base, cl100k_base and r50k_base, the
// npm package tiktoken 1.0.22, which is OpenAI's library in WebAssembly, counted
// the same.
//
// # Cost
//
// Measured with Go 1.26 on two shared cores, best of several runs; the ratios
// say more than the speeds.
//
//	o200k_base, 100 kB      Count                   tiktoken-go
//	English                 139 MB/s    0 allocs    3.5 MB/s    116,000 allocs
//	Go source                68 MB/s    0 allocs    2.9 MB/s    151,000 allocs
//	JSON, logs and base64    28 MB/s    0 allocs    0.9 MB/s    271,000 allocs
//	Russian                  20 MB/s    0 allocs    2.6 MB/s     65,000 allocs
//	Chinese                  15 MB/s    0 allocs    3.2 MB/s     31,000 allocs
//	a sentence, 77 bytes      2 µs      0 allocs     47 µs          104 allocs
//
//	go test ./estimate/tiktoken -run xxx -bench 'Count|Short|JSON' -benchmem
//
// Runs that are one piece, such as 1 MB of one letter, of spaces, of Chinese
// without punctuation, of emoji, of combining marks or of random letters, are
// counted at WORST or more, and at the same speed as 64 kB of them:
//
//	go test ./estimate/tiktoken -run xxx -bench B062
//
// Memory and time to build, once in a process:
//
//	o200k_base     5.0 MB kept    8.0 MB allocated    55 ms
//	cl100k_base    2.6 MB         4.0 MB              13 ms
//	p50k_base      1.4 MB         2.2 MB               6 ms
//	r50k_base      1.4 MB         2.1 MB               7 ms
//
//	go test ./estimate/tiktoken -run xxx -bench Build -benchmem
//
// A count in progress uses about 300 kB of scratch memory at most, pooled, unless
// a single piece of invalid UTF-8 or of escaped JSON is longer than that.
package tiktoken
