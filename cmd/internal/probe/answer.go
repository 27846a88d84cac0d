package probe

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/usage"
)

// answer is one answer of the provider, with what was asked.
type answer struct {
	status int
	header http.Header
	sent   time.Time
	took   time.Duration // to the header; 0 in a recorded one
	asked  estimate.Request
	counts usage.Counts
	used   bool // counts are there
}

// maxBody is how much of an answer is read for its usage.
const maxBody = 1 << 20

// readRecorded reads headers as curl -i prints them: status lines, fields, a
// blank line and, if they are there, bodies. A header without a status line is
// one too.
func readRecorded(r io.Reader) ([]answer, error) {
	text, err := io.ReadAll(io.LimitReader(r, 4<<20))
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	var starts []int
	for i := 0; i < len(text); {
		if status.Match(text[i:]) {
			starts = append(starts, i)
		}
		next := bytes.IndexByte(text[i:], '\n')
		if next < 0 {
			break
		}
		i += next + 1
	}
	if len(starts) == 0 {
		text = append([]byte("HTTP/1.1 200 OK\n"), text...)
		starts = []int{0}
	}
	var out []answer
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		a, err := parseRecorded(text[at:end])
		if err != nil {
			return nil, err
		}
		if a.status >= 200 { // 100 Continue is no answer
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("there is no answer in it")
	}
	return out, nil
}

var status = regexp.MustCompile(`^HTTP/\d(\.\d)? (\d{3})\b`)

func parseRecorded(text []byte) (answer, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	var a answer
	if m := status.FindSubmatch(line); m != nil {
		a.status, _ = strconv.Atoi(string(m[2]))
	}
	head, body, _ := bytes.Cut(rest, []byte("\n\n"))
	lines := io.MultiReader(bytes.NewReader(head), strings.NewReader("\n\n"))
	fields, err := textproto.NewReader(bufio.NewReader(lines)).ReadMIMEHeader()
	if err != nil {
		return a, errors.New("a line of a header has no colon")
	}
	if len(fields) == 0 && a.status >= 200 {
		return a, errors.New("an answer has no header")
	}
	a.header = http.Header(fields)
	a.sent, _ = http.ParseTime(a.header.Get("Date"))
	a.read(body)
	return a, nil
}

// read takes the usage from a body.
func (a *answer) read(body []byte) {
	r := usage.Read(a.header.Get("Content-Type"), a.header.Get("Content-Encoding"), body)
	a.counts, a.used = r.Counts, r.Found
}

// kept reports whether a field tells of limits or times and of nobody.
func kept(name string) bool {
	name = strings.ToLower(name)
	if slices.Contains([]string{"date", "retry-after", "retry-after-ms", "x-should-retry", "openai-processing-ms", "x-envoy-upstream-service-time"}, name) {
		return true
	}
	for _, part := range []string{"ratelimit", "rate-limit", "rate_limit", "query-cost", "quota"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// The shapes of values that name nobody: numbers, times, and short words.
var (
	harmless   = regexp.MustCompile(`^[0-9A-Za-z .,:;=%"'+\-/_()]{0,120}$`)
	identifier = regexp.MustCompile(`(?i)(org|proj|user|acct|key|sk|req)[-_][0-9a-z]{3,}|[0-9a-f]{8}-[0-9a-f]{4}|[0-9A-Za-z+/]{20,}|pk=`)
)

// anonymous is the part of a header that may be handed on.
func anonymous(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		v := strings.Join(values, ", ")
		if kept(name) && harmless.MatchString(v) && !identifier.MatchString(v) {
			out[name] = v
		}
	}
	return out
}
