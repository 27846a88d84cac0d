package rttest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// mutants are layers with one fault each. TestContract runs the suite on the layer
// that the environment names, and on none by default.
var mutants = map[string]wrapper{
	"edits the header": func(base http.RoundTripper) http.RoundTripper {
		return Func(func(r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Mutant", "1")
			return base.RoundTrip(r)
		})
	},
	"replaces the body": func(base http.RoundTripper) http.RoundTripper {
		return Func(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				r.Body = io.NopCloser(r.Body)
			}
			return base.RoundTrip(r)
		})
	},
	"buffers the request": func(base http.RoundTripper) http.RoundTripper {
		return Func(func(r *http.Request) (*http.Response, error) {
			out := r.Clone(r.Context())
			if r.Body != nil {
				b, _ := io.ReadAll(r.Body)
				r.Body.Close()
				out.Body = io.NopCloser(bytes.NewReader(b))
			}
			return restore(base.RoundTrip(out))(r)
		})
	},
	"buffers the response": func(base http.RoundTripper) http.RoundTripper {
		return clean(base, func(resp *http.Response) {
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			resp.Body = io.NopCloser(bytes.NewReader(b))
		})
	},
	"wraps the response body": func(base http.RoundTripper) http.RoundTripper {
		return clean(base, func(resp *http.Response) {
			resp.Body = struct{ io.ReadCloser }{resp.Body}
		})
	},
	"loses Close": func(base http.RoundTripper) http.RoundTripper {
		return clean(base, func(resp *http.Response) {
			if resp.StatusCode != 101 {
				resp.Body = io.NopCloser(resp.Body)
			}
		})
	},
	"clones the trailer": func(base http.RoundTripper) http.RoundTripper {
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			return restore(base.RoundTrip(r.Clone(r.Context())))(r)
		})}
	},
	"is another's request": func(base http.RoundTripper) http.RoundTripper {
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			out := r.WithContext(r.Context())
			out.Header = r.Header.Clone()
			return base.RoundTrip(out)
		})}
	},
	"loses GetBody": func(base http.RoundTripper) http.RoundTripper {
		return edited(base, func(out *http.Request) { out.GetBody = nil })
	},
	"loses the length": func(base http.RoundTripper) http.RoundTripper {
		return edited(base, func(out *http.Request) { out.ContentLength = -1 })
	},
	"loses the context": func(base http.RoundTripper) http.RoundTripper {
		return edited(base, func(out *http.Request) { *out = *out.WithContext(context.Background()) })
	},
	"follows redirects": func(base http.RoundTripper) http.RoundTripper {
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			return (&http.Client{Transport: base}).Do(r.Clone(r.Context()))
		})}
	},
	"leaves the body open": func(base http.RoundTripper) http.RoundTripper {
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			return plain(base).RoundTrip(r)
		})}
	},
	"hides CloseIdleConnections": func(base http.RoundTripper) http.RoundTripper {
		return Func(func(r *http.Request) (*http.Response, error) { return plain(base).RoundTrip(r) })
	},
	"leaks a goroutine": func(base http.RoundTripper) http.RoundTripper {
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			go func() { select {} }()
			return plain(base).RoundTrip(r)
		})}
	},
	// Shared state without a lock, made certain: each call answers with the
	// request of the one before.
	"mixes up calls": func(base http.RoundTripper) http.RoundTripper {
		var mu sync.Mutex
		var before *http.Request
		return closing{base, Func(func(r *http.Request) (*http.Response, error) {
			resp, err := plain(base).RoundTrip(r)
			mu.Lock()
			defer mu.Unlock()
			if resp != nil && before != nil {
				resp.Request = before
			}
			before = r
			return resp, err
		})}
	},
}

// plain is the smallest layer that keeps the contract.
func plain(base http.RoundTripper) http.RoundTripper { return clean(base, func(*http.Response) {}) }

func clean(base http.RoundTripper, f func(*http.Response)) http.RoundTripper {
	return closing{base, Func(func(r *http.Request) (*http.Response, error) {
		out := r.WithContext(r.Context())
		out.Header = r.Header.Clone()
		resp, err := restore(base.RoundTrip(out))(r)
		if err == nil {
			f(resp)
		}
		return resp, err
	})}
}

func edited(base http.RoundTripper, f func(*http.Request)) http.RoundTripper {
	return closing{base, Func(func(r *http.Request) (*http.Response, error) {
		out := r.WithContext(r.Context())
		out.Header = r.Header.Clone()
		f(out)
		return restore(base.RoundTrip(out))(r)
	})}
}

type closing struct {
	base http.RoundTripper
	http.RoundTripper
}

func (c closing) CloseIdleConnections() {
	if i, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		i.CloseIdleConnections()
	}
}

func restore(resp *http.Response, err error) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		switch {
		case resp != nil && err != nil:
			resp.Body.Close()
			return nil, err
		case resp == nil && err == nil:
			return nil, io.ErrUnexpectedEOF
		case resp != nil:
			resp.Request = r
		}
		return resp, err
	}
}

// TestContract: the smallest honest layer passes.
func TestContract(t *testing.T) {
	if name := os.Getenv("RTTEST_MUTANT"); name != "" {
		Run(t, mutants[name])
		return
	}
	Run(t, plain)
}

// TestMutants: no faulty layer passes. The suite runs in a process of its own, as a
// test that fails cannot be undone.
func TestMutants(t *testing.T) {
	for name := range mutants {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestContract$", "-test.failfast")
			cmd.Env = append(os.Environ(), "RTTEST_MUTANT="+name)
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Errorf("passes")
			} else if !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:") {
				t.Errorf("did not run: %v\n%s", err, out)
			}
		})
	}
}
