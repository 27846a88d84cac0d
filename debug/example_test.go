package debug_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/tripmeter/tripmeter/debug"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/transport"
)

func Example() {
	m := meter.New(meter.Options{})
	rt, err := transport.New(transport.Options{RPM: 500, TPM: 200_000, Trace: m.Trace("openai")})
	if err != nil {
		fmt.Println(err)
		return
	}
	m.Watch("openai", rt)

	mux := http.NewServeMux()
	mux.Handle("/debug/tripmeter/", debug.Handler(m, debug.Options{}))
	server := httptest.NewServer(mux) // in a program: http.ListenAndServe("localhost:6060", mux)
	defer server.Close()

	resp, err := http.Get(server.URL + "/debug/tripmeter/")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode, resp.Header.Get("Content-Type"))
	// Output: 200 text/html; charset=utf-8
}
