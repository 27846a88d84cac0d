package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/record"
	"github.com/tripmeter/tripmeter/transport"
)

// tape records both runs into a folder; the zero tape records nothing.
type tape struct {
	dir   string
	names []string
	files []*os.File
	tapes []*record.Recorder
}

func newTape(dir string) (*tape, error) {
	if dir == "" {
		return &tape{}, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return &tape{dir: dir}, nil
}

// next starts the recording of a run.
func (t *tape) next(name string) (*record.Recorder, error) {
	f, err := os.Create(filepath.Join(t.dir, name+".jsonl"))
	if err != nil {
		return nil, err
	}
	r := record.New(f)
	t.names, t.files, t.tapes = append(t.names, name), append(t.files, f), append(t.tapes, r)
	return r, nil
}

type wrapper func(base http.RoundTripper) (http.RoundTripper, error)

// plain records a client that is not tripmeter.
func (t *tape) plain(wrap wrapper) wrapper {
	return t.ours(func(base http.RoundTripper, _ transport.Trace) (http.RoundTripper, error) { return wrap(base) })
}

// ours records a Transport, which takes the trace.
func (t *tape) ours(wrap func(http.RoundTripper, transport.Trace) (http.RoundTripper, error)) wrapper {
	return func(base http.RoundTripper) (http.RoundTripper, error) {
		if t.dir == "" {
			return wrap(base, transport.Trace{})
		}
		r, err := t.next([]string{"retrying", "tripmeter"}[len(t.tapes)])
		if err != nil {
			return nil, err
		}
		rt, err := wrap(r.Wire(base), r.Trace())
		if err != nil {
			return nil, err
		}
		return r.Calls(rt), nil
	}
}

// draw ends the recordings and draws them beside each other.
func (t *tape) draw(progress io.Writer) error {
	if t.dir == "" {
		return nil
	}
	var runs []record.Run
	for i, r := range t.tapes {
		if err := errors.Join(r.Close(), t.files[i].Close()); err != nil {
			return err
		}
		events, err := record.ReadFile(t.files[i].Name())
		if err != nil {
			return err
		}
		runs = append(runs, record.Run{Name: t.names[i], Events: events})
	}
	o := record.Options{
		Title:  fmt.Sprintf("%d requests at once; %s tokens a minute are allowed", requests, meter.Number(tpm)),
		Tokens: tpm, Held: tpm / 60 * int64(capacity.Seconds()),
	}
	for _, small := range []bool{false, true} {
		name := filepath.Join(t.dir, "run.svg")
		if o.Small = small; small {
			name = filepath.Join(t.dir, "run-small.svg")
		}
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		if err := errors.Join(record.Draw(f, o, runs...), f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(progress, "wrote %s\n", name)
	}
	return nil
}
