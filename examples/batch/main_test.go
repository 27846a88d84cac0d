package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// Three hundred requests, a bad line and a refused one, at two a second: every
// line has its answer or its error, and nothing is refused for the rate.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Limits: providertest.Limits{RPM: 120, TPM: 100_000}, Capacity: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		rt, err := transport.New(transport.Options{Base: p.RoundTripper(), RPM: 120, TPM: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		var in, out strings.Builder
		for i := range 300 {
			fmt.Fprintf(&in, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"Hello"}]}}`+"\n", i)
		}
		in.WriteString("rubbish\n" + `{"custom_id":"x","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}`)
		j := job{client: &http.Client{Transport: rt}, base: "http://box"}
		failed, err := j.run(strings.NewReader(in.String()), &out)
		s := p.Stats()
		if err != nil || failed != 2 || strings.Count(out.String(), "\n") != 302 || strings.Count(out.String(), `"status_code":200`) != 300 || s.Refused != 0 || s.Completed != 300 {
			t.Errorf("%d failed, %v, %d lines, %+v", failed, err, strings.Count(out.String(), "\n"), s)
		}
	})
}
