package batch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/internal/refusal"
)

// kind is what the end of one sending means for the request and for the job.
type kind int

const (
	good      kind = iota // a 2xx: the answer
	final                 // an error that speaks of this request: an answer too
	noPath                // a 404 of the path: an answer, but a row of them is a wrong address
	noKey                 // 401, 403
	noMoney               // the account has no credit
	noModel               // the model is not there
	moved                 // a redirect
	tooFast               // 429
	ailing                // 5xx, overload
	garbled               // half an answer, or what is no answer of an API
	away                  // no connection
	withdrawn             // stopped before it was sent
	spent                 // -max-cost
	kinds
)

// answers reports whether a line is written for an end of kind k.
func (k kind) answers() bool { return k <= noPath }

// everywhere reports whether k concerns all models alike.
func (k kind) everywhere() bool {
	return k == noPath || k == noKey || k == noMoney || k == moved || k == away
}

// passes reports whether waiting may mend k.
func (k kind) passes() bool { return k == tooFast || k == ailing || k == garbled || k == away }

func (k kind) String() string {
	return [kinds]string{"answered", "refused as wrong", "no such path", "key not accepted", "account without credit",
		"no such model", "redirected", "rate limit", "server failing", "broken answers", "no connection", "stopped", "cost limit"}[k]
}

// code is k in the errors of requests that are left.
func (k kind) code() string {
	return [kinds]string{final: "refused", noPath: "no_path", noKey: "key", noMoney: "credit", noModel: "model", moved: "redirected",
		tooFast: "rate_limit", ailing: "server", garbled: "broken_answer", away: "connection", withdrawn: "not_sent", spent: "max_cost"}[k]
}

// advice is what the user does about a row of ends of kind k.
func (k kind) advice() string {
	switch k {
	case final:
		return "check -base-url, and the url and body of the requests; nothing of them was answered, so all of them are sent again by the same command"
	case noPath:
		return "check -base-url and the url of the requests, then run the same command again"
	case noKey:
		return "check the key in the environment and its rights, then run the same command again"
	case noMoney:
		return "add credit to the account, then run the same command again"
	case noModel:
		return "check the name of the model and the key's access to it, then run the same command again"
	case moved:
		return "name the address it points to as -base-url"
	case tooFast:
		return "set -rpm and -tpm to your limits, or run the same command again later"
	case garbled:
		return "look at what answers at -base-url, such as a proxy or a login page; then run the same command again"
	case ailing, away:
		return "run the same command again when the server is back, or wait longer with -max-wait"
	}
	return "run the same command again to go on"
}

// outcome is the end of one sending.
type outcome struct {
	kind    kind
	detail  string // such as "401 invalid_api_key"; nothing of the request
	answer  *batchfile.Response
	failure *batchfile.Failure
	never   bool // the server says that another attempt is no use
	local   bool // nothing was sent
}

// counted is how the report calls it.
func (o outcome) counted() string {
	if o.detail == "" {
		return o.kind.String()
	}
	return fmt.Sprintf("%s (%s)", o.kind, o.detail)
}

// judge reads a response that came whole.
func judge(status int, contentType string, body []byte) outcome {
	v := refusal.Classify(status, body)
	o := outcome{detail: strings.TrimSpace(fmt.Sprintf("%d %s", status, cmp.Or(word(v.Code), word(v.Type), word(v.Status))))}
	switch {
	case status/100 == 2 && v.Class == "":
		if contentType == "" {
			contentType = http.DetectContentType(body)
		}
		switch {
		case strings.Contains(contentType, "json") && !json.Valid(body):
			o.kind, o.detail = garbled, fmt.Sprintf("%d, an answer that is no JSON though it says so; is there a proxy?", status)
		case strings.Contains(contentType, "text/html"): // a page to log in, perhaps: no API answers so
			o.kind, o.detail = garbled, fmt.Sprintf("%d, a web page instead of an answer; is there a proxy?", status)
		default:
			return outcome{kind: good}
		}
		return o
	case status/100 == 3:
		o.kind = moved
	case v.Account || v.Class == refusal.Quota || status == 402:
		o.kind = noMoney
	case status == 401 || status == 403:
		o.kind = noKey
	case missingModel(status, v, body):
		o.kind = noModel
	case v.Class == refusal.TooLarge:
		o.kind = final
	case v.Class == refusal.Overload, v.Class == refusal.Server, v.Class == refusal.Timeout:
		o.kind = ailing
	case status == 429 || v.Class == refusal.RateLimit:
		o.kind = tooFast
	case status == 408 || status == 409 || status == 425 || status >= 500:
		o.kind = ailing
	case status == 404 || status == 405 || status == 410:
		o.kind = noPath
	default:
		o.kind = final
	}
	return o
}

// missingModel reports whether an error is about a model that is not there.
// OpenAI and its like have a code for it, Azure another; Anthropic, Ollama and
// vLLM have a 404 whose message names the model.
func missingModel(status int, v refusal.Verdict, body []byte) bool {
	switch v.Code {
	case "model_not_found", "DeploymentNotFound", "ModelNotFound", "invalid_model":
		return true
	}
	if status != 404 {
		return false
	}
	body = bytes.ToLower(body[:min(len(body), 4096)])
	return json.Valid(body) && (bytes.Contains(body, []byte("model")) || bytes.Contains(body, []byte("deployment")))
}

// word is s if it is a code, and nothing that a provider may have copied from
// the request.
func word(s string) string {
	if len(s) > 40 || strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.')
	}) {
		return ""
	}
	return s
}

// judgeError reads an error of the client.
func judgeError(ctx context.Context, err error) outcome {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // its own words repeat the URL, whose query may hold a key
	}
	r, local := meter.RefusalOf(err)
	switch {
	case local && r.TooLarge:
		return outcome{kind: final, local: true, detail: "larger than the limit", failure: &batchfile.Failure{Code: "too_large_for_limit", Message: err.Error()}}
	case ctx.Err() != nil, local:
		return outcome{kind: withdrawn}
	}
	return outcome{kind: away, detail: cause(err)}
}

// cause is an error of the network in few words, without addresses of ours.
func cause(err error) string {
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns):
		return "the name of the host cannot be looked up"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "no answer in time"
	}
	text := err.Error()
	for _, end := range []string{"EOF", "connection reset", "broken pipe", "closed idle connection", "connection refused", "no route to host", "network is unreachable"} {
		if strings.Contains(text, end) {
			switch end {
			case "EOF", "connection reset", "broken pipe", "closed idle connection":
				return "the connection was cut"
			}
			return end
		}
	}
	if errors.As(err, &op) {
		text = op.Err.Error()
	}
	if i := strings.LastIndex(text, ": "); i >= 0 && len(text) > 60 {
		text = text[i+2:]
	}
	return text
}
