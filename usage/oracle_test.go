package usage

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"
)

// readTree is the oracle: the same table walked over the tree that
// encoding/json makes of a whole document.
func readTree(t testing.TB, body []byte) Result {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	o := oracle{t: t, dec: dec}
	tok := o.token()
	switch tok {
	case json.Delim('{'):
		o.object(nodeRoot)
		o.r.endDocument()
	case json.Delim('['):
		for dec.More() {
			if o.token() == json.Delim('{') {
				o.object(nodeRoot)
				o.r.endDocument()
				continue
			}
			// A list of anything else says nothing, yet must be read past.
			return Result{}
		}
	}
	c := o.r.usage.normal()
	if o.r.choice && o.r.choices {
		c = Counts{}
	}
	c.AudioSeconds = o.r.seconds
	return Result{Counts: c, Found: c.Input.OK || c.Output.OK || c.Total.OK, OutputBytes: o.r.text, Refusal: o.r.refusal}
}

type oracle struct {
	t   testing.TB
	dec *json.Decoder
	r   reading
}

func (o *oracle) token() json.Token {
	tok, err := o.dec.Token()
	if err != nil {
		o.t.Fatalf("oracle: %v", err)
	}
	return tok
}

// object reads the members after the opening brace.
func (o *oracle) object(n node) {
	for o.dec.More() {
		key := o.token().(string)
		m := shapes[n][key]
		o.value(n, m, o.token())
	}
	o.token()
}

func (o *oracle) value(n node, m *member, tok json.Token) {
	if m == nil {
		m = &member{}
	}
	if m.seen != nil {
		first := byte('0')
		switch tok {
		case json.Delim('{'):
			first = '{'
		case json.Delim('['):
			first = '['
		}
		m.seen(&o.r, first)
	}
	switch v := tok.(type) {
	case json.Delim:
		if v == '{' {
			statement := usageNodes[m.object]
			if statement {
				o.r.openUsage(n)
			}
			empty := !o.dec.More()
			o.object(m.object)
			if m == failure && empty {
				o.r.doc.failed = o.r.doc.kind == fails
			}
			if statement {
				o.r.closeUsage()
			}
			return
		}
		if m.field != fieldNone {
			o.r.impossible(n, m)
		}
		for o.dec.More() {
			tok := o.token()
			if tok == json.Delim('{') {
				o.object(m.array)
				continue
			}
			o.value(nodeNone, nil, tok)
		}
		o.token()
	case string:
		if m.field != fieldNone {
			o.r.impossible(n, m)
		}
		switch m.text {
		case asWord:
			m.word(&o.r, []byte(v))
		case asText:
			o.r.addText(m.counter, int64(len(v)))
		}
	case json.Number:
		if m.field != fieldNone && len(v) <= maxWord {
			o.r.number(n, m, []byte(v))
		} else if m.field != fieldNone {
			o.r.impossible(n, m)
		}
	case bool:
		if m.flag != nil {
			m.flag(&o.r, v)
		} else if m.field != fieldNone {
			o.r.impossible(n, m)
		}
	}
}

var surrogate = regexp.MustCompile(`\\u[dD]`)

// compareWithTree checks a body that is one well-formed document.
func compareWithTree(t *testing.T, body []byte) {
	t.Helper()
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return
	}
	got, want := Read("application/json", "", body), readTree(t, body)
	if !reflect.DeepEqual(got.Counts, want.Counts) || got.Found != want.Found {
		if want.Counts == (Counts{}) && body[0] == '[' {
			return // a list with something else than documents
		}
		t.Fatalf("%s\ncounts %+v\nwant   %+v", body, got.Counts, want.Counts)
	}
	if exact := utf8.Valid(body) && !surrogate.Match(body); got.OutputBytes > want.OutputBytes || exact && got.OutputBytes != want.OutputBytes {
		t.Fatalf("%s\ntext %d bytes, want %d", body, got.OutputBytes, want.OutputBytes)
	}
	if got.Refusal == nil && want.Refusal != nil {
		t.Fatalf("%s\nthe error was not seen", body)
	}
}

func TestOracle(t *testing.T) {
	ran := 0
	for _, e := range facts(t) {
		if !json.Valid([]byte(e.Body)) {
			continue
		}
		ran++
		compareWithTree(t, []byte(e.Body))
		var indented bytes.Buffer
		if err := json.Indent(&indented, []byte(e.Body), " ", "\t"); err != nil {
			t.Fatal(err)
		}
		compareWithTree(t, indented.Bytes())
		if a, b := Read("", "", []byte(e.Body)), Read("", "", indented.Bytes()); !reflect.DeepEqual(a.Counts, b.Counts) {
			t.Errorf("%s: blanks change the counts", e.ID)
		}
	}
	if ran < 60 {
		t.Fatalf("ran %d", ran)
	}
}

// FuzzOracle compares the scanner with encoding/json on every well-formed
// document.
func FuzzOracle(f *testing.F) {
	for _, e := range facts(f) {
		if json.Valid([]byte(e.Body)) {
			f.Add([]byte(e.Body))
		}
	}
	for _, s := range []string{
		`{"usage":{"prompt_tokens":1},"usage":null}`,
		`{"usage":[{"prompt_tokens":1}]}`,
		`{"\u0075sage":{"prompt_\u0074okens":1e1,"completion_tokens":0.5e1}}`,
		`{"a":"\\\\\"","usage":{"prompt_tokens":12.0}}`,
		`[{"usage":{"prompt_tokens":3}},{"choices":[{"delta":{"content":"é\u00e9\n"}}]}]`,
		`{"choices":[{"index":1,"usage":{"prompt_tokens":3}}]}`,
		`{"a":[[[[{"usage":{"prompt_tokens":3}}]]]],"b":{"usage":{"prompt_tokens":4}}}`,
		`{"error":{},"response":{"error":"x"}}`,
		`{"usage":{"iterations":[{"input_tokens":5},{"input_tokens":6}],"input_tokens":6}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if json.Valid(body) {
			compareWithTree(t, body)
		}
	})
}

// FuzzPieces: for all bytes, the result does not depend on how they were cut,
// nothing panics, and no count is negative.
func FuzzPieces(f *testing.F) {
	for _, e := range facts(f) {
		f.Add(e.ContentType, "", []byte(e.Body), uint16(3), uint16(5))
	}
	f.Add("application/json", "gzip", gzipped(f, []byte(`{"usage":{"prompt_tokens":1}}`)), uint16(1), uint16(9))
	f.Add("application/json", "deflate", zlibbed(f, []byte(`{"usage":{"prompt_tokens":1}}`)), uint16(1), uint16(9))
	f.Add("application/vnd.amazon.eventstream", "", frame(nil, `{"usage":{"inputTokens":1}}`), uint16(1), uint16(9))
	f.Add("application/vnd.amazon.eventstream", "", frame([]string{":event-type", "chunk"}, `{"bytes":"eyJ1c2FnZSI6eyJpbnB1dF90b2tlbnMiOjF9fQ=="}`), uint16(50), uint16(60))
	f.Add("application/x-ndjson", "", []byte("{bad\n{\"eval_count\":3}\n"), uint16(1), uint16(9))
	f.Add("text/event-stream", "", []byte("data: {\"delta\":\"\\ud83d\\ude00\\\"\"}\r\rdata:x\n"), uint16(17), uint16(20))
	f.Fuzz(func(t *testing.T, contentType, encoding string, body []byte, i, j uint16) {
		want := Read(contentType, encoding, body)
		a := int(i) % (len(body) + 1)
		b := a + int(j)%(len(body)-a+1)
		m := NewMeter(contentType, encoding)
		m.Write(body[:a])
		m.Write(body[a:b])
		m.Write(body[b:])
		if got := m.Close(); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut at %d and %d: %+v, whole %+v", a, b, got, want)
		}
		if got := inPieces(contentType, encoding, body, func() int { return 1 }); !reflect.DeepEqual(got, want) {
			t.Fatalf("bytes: %+v, whole %+v", got, want)
		}
		for name, n := range countsOf(want.Counts) {
			if n < 0 {
				t.Fatalf("%s is %d", name, n)
			}
		}
		if want.OutputBytes < 0 || want.OutputBytes > int64(MaxUnpacked) && encoding == "" {
			t.Fatalf("%d bytes of text", want.OutputBytes)
		}
	})
}
